import createClient from 'openapi-fetch';

import type { paths } from './generated/api';

const { PARLEY_URL: baseUrl = '', PARLEY_KEY: key } = process.env;
const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${key}` } });

function dataOf<T>({ data, error }: { data?: T; error?: unknown }): T {
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

const channel = dataOf(await client.POST('/api/v1/channels', { body: { name: 'Generated' } }));
const at = { path: { id: channel.id } };
const post = async (text: string, span_id: string | null, parent_span_id: string | null) =>
  dataOf(
    await client.POST('/api/v1/channels/{id}/interactions', {
      params: at,
      body: { content: [{ type: 'text', text }], span_id, parent_span_id },
    }),
  );
const root = await post('Hello', 'root', null);
await post('World', null, 'root');
const tree = dataOf(
  await client.GET('/api/v1/interactions/{interaction_id}', {
    params: { path: { interaction_id: root.id }, query: { include_nested_interactions: true } },
  }),
);
const [below] = tree.nested_interactions ?? [];
const item = below?.content[0];
if (item?.type !== 'text' || item.text !== 'World') throw new Error('the tree lacks the reply');
const page = dataOf(await client.GET('/api/v1/channels/{id}/interactions', { params: at }));
if (page.items.length !== 2) throw new Error('the list lacks interactions');

const media = dataOf(
  await client.POST('/api/v1/media/uploads', {
    params: { query: { name: 'a.txt' } },
    body: new Blob(['bytes']) as unknown as string,
    bodySerializer: (body) => body,
    headers: { 'content-type': 'application/octet-stream' },
  }),
);
if (!('file_url' in media)) throw new Error('the file is not stored');
const token = media.file_url?.split('/').at(-1) ?? '';
const file = dataOf(await client.GET('/api/v1/media/files/{token}', { params: { path: { token } }, parseAs: 'text' }));
if (String(file) !== 'bytes') throw new Error('the file has changed');
