import importlib
import io
import os
import pkgutil

import parley_client
from parley_client import AuthenticatedClient
from parley_client.api.channels import create_channel
from parley_client.api.interactions import get_interaction, list_interactions, post_interaction
from parley_client.api.media import continue_media_upload, get_media_file, upload_media
from parley_client.models import ChannelCreateInput, InteractionPostInput, Media, TextContent, TextContentInput
from parley_client.types import File

# Each module can be imported.
for module in pkgutil.walk_packages(parley_client.__path__, 'parley_client.'):
    importlib.import_module(module.name)

client = AuthenticatedClient(base_url=os.environ['PARLEY_URL'], token=os.environ['PARLEY_KEY'])
channel = create_channel.sync(client=client, body=ChannelCreateInput(name='Generated'))


def post(text, span_id=None, parent_span_id=None):
    body = InteractionPostInput(
        content=[TextContentInput(type_='text', text=text)], span_id=span_id, parent_span_id=parent_span_id
    )
    return post_interaction.sync(channel.id, client=client, body=body)


root = post('Hello', span_id='root')
post('World', parent_span_id='root')
tree = get_interaction.sync(root.id, client=client, include_nested_interactions=True)
item = tree.nested_interactions[0].content[0]
assert isinstance(item, TextContent) and item.text == 'World', tree
page = list_interactions.sync(channel.id, client=client)
assert len(page.items) == 2, page

media = upload_media.sync(client=client, body=File(io.BytesIO(b'bytes')), name='a.txt')
assert isinstance(media, Media), media
file = get_media_file.sync(media.file_url.rsplit('/', 1)[1], client=client)
assert file.payload.read() == b'bytes', file
assert callable(continue_media_upload.sync)
