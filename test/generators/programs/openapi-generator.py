import importlib
import os
import pkgutil

import parley
from parley.models import ChannelCreateInput, InteractionContentInput, InteractionPostInput, TextContentInput

# Each module can be imported.
for module in pkgutil.walk_packages(parley.__path__, 'parley.'):
    importlib.import_module(module.name)

configuration = parley.Configuration(host=os.environ['PARLEY_URL'], api_key={'ApiKey': os.environ['PARLEY_KEY']})
client = parley.ApiClient(configuration)
interactions = parley.InteractionsApi(client)
channel = parley.ChannelsApi(client).create_channel(ChannelCreateInput(name='Generated'))


def post(text, **spans):
    content = [InteractionContentInput(TextContentInput(type='text', text=text))]
    return interactions.post_interaction(channel.id, InteractionPostInput(content=content, **spans))


root = post('Hello', span_id='root')
post('World', parent_span_id='root')
tree = interactions.get_interaction(root.id, include_nested_interactions=True)
assert tree.nested_interactions[0].content[0].actual_instance.text == 'World', tree
page = interactions.list_interactions(channel.id)
assert len(page.items) == 2, page

media = parley.MediaApi(client).upload_media(name='a.txt', body=b'bytes')
file = parley.MediaApi(client).get_media_file(media.file_url.rsplit('/', 1)[1])
assert bytes(file) == b'bytes', file
