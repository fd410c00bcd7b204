import {
  createChannel,
  getInteraction,
  getMediaFile,
  listInteractions,
  postInteraction,
  uploadMedia,
} from './generated/api';

const { PARLEY_KEY: key } = process.env;
const options = { headers: { authorization: `Bearer ${key}` } };

const created = await createChannel({ name: 'Generated' }, options);
if (created.status !== 200) throw new Error(JSON.stringify(created.data));
const { id } = created.data;
const post = async (text: string, span_id: string | null, parent_span_id: string | null) => {
  const posted = await postInteraction(id, { content: [{ type: 'text', text }], span_id, parent_span_id }, options);
  if (posted.status !== 200) throw new Error(JSON.stringify(posted.data));
  return posted.data;
};
const root = await post('Hello', 'root', null);
await post('World', null, 'root');
const tree = await getInteraction(root.id, { include_nested_interactions: true }, options);
if (tree.status !== 200) throw new Error(JSON.stringify(tree.data));
const item = tree.data.nested_interactions?.[0]?.content[0];
if (item?.type !== 'text' || item.text !== 'World') throw new Error('the tree lacks the reply');
const page = await listInteractions(id, undefined, options);
if (page.status !== 200 || page.data.items.length !== 2) throw new Error('the list lacks interactions');

const media = await uploadMedia(new Blob(['bytes']), { name: 'a.txt' }, options);
if (media.status !== 200) throw new Error(JSON.stringify(media.data));
const file = await getMediaFile(media.data.file_url?.split('/').at(-1) ?? '');
if (file.status !== 200 || (await file.data.text()) !== 'bytes') throw new Error('the file has changed');
