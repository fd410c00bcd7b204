import { client } from './generated/client.gen';
import {
  createChannel,
  getInteraction,
  getMediaFile,
  listInteractions,
  postInteraction,
  uploadMedia,
} from './generated';

const { PARLEY_URL: baseUrl = '', PARLEY_KEY: key = '' } = process.env;
client.setConfig({ baseUrl, auth: key, throwOnError: true });
const throwOnError = true;

const { data: channel } = await createChannel({ body: { name: 'Generated' }, throwOnError });
const path = { id: channel.id };
const post = async (text: string, span_id: string | null, parent_span_id: string | null) => {
  const body = { content: [{ type: 'text' as const, text }], span_id, parent_span_id };
  return (await postInteraction({ path, body, throwOnError })).data;
};
const root = await post('Hello', 'root', null);
await post('World', null, 'root');
const { data: tree } = await getInteraction({
  path: { interaction_id: root.id },
  query: { include_nested_interactions: true },
  throwOnError,
});
const item = tree.nested_interactions?.[0]?.content[0];
if (item?.type !== 'text' || item.text !== 'World') throw new Error('the tree lacks the reply');
const { data: page } = await listInteractions({ path, throwOnError });
if (page.items.length !== 2) throw new Error('the list lacks interactions');

const { data: media } = await uploadMedia({ query: { name: 'a.txt' }, body: new Blob(['bytes']), throwOnError });
if (!('file_url' in media)) throw new Error('the file is not stored');
const token = media.file_url?.split('/').at(-1) ?? '';
const { data: file } = await getMediaFile({ path: { token }, throwOnError });
if (!(file instanceof Blob) || (await file.text()) !== 'bytes') throw new Error('the file has changed');
