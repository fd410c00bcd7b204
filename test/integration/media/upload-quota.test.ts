/** Resumable uploads that are not complete have a quota, of their key and of the organization. */
import { afterAll, beforeAll, expect, it } from 'vitest';

import { DocumentsApi } from '#test/support/documents-api.ts';
import type { Answer } from '#test/support/test-api.ts';

const UPLOADS = '/api/v1/media/uploads';
const MIB = 1024 * 1024;

let api: DocumentsApi;
beforeAll(async () => {
  api = await DocumentsApi.start({
    hasWorker: false,
    uploads: { perKey: { count: 3, bytes: 20 * MIB }, perOrganization: { count: 4, bytes: 30 * MIB } },
  });
});
afterAll(() => api?.stop());

/** A key of the first organization. */
async function newKey(): Promise<string> {
  const body = { name: 'a key', scopes: ['read', 'write'], principal: { type: 'service', id: 'uploader' } };
  return (await api.call('POST', '/api/v1/keys', body)).json.key;
}

function begin(length: number, key: string, headers: Record<string, string> = {}) {
  return api.call('POST', UPLOADS, undefined, { 'upload-length': `${length}`, ...headers }, key);
}

const complete = (address: string, length: number, key: string) =>
  api.call(
    'PATCH',
    address,
    Buffer.alloc(length, 'x'),
    { 'content-type': 'application/offset+octet-stream', 'upload-offset': '0' },
    key,
  );

const addressOf = ({ headers }: Answer): string => String(headers['location']);

it('counts uploads of a key and of the organization until they are complete or cancelled', async () => {
  const [first, second] = [await newKey(), await newKey()];
  const own = await Promise.all(Array.from({ length: 8 }, () => begin(10, first)));
  expect(own.map(({ status }) => status).toSorted()).toEqual([201, 201, 201, 429, 429, 429, 429, 429]);
  const refused = own.find(({ status }) => status === 429)!;
  expect(refused.headers['retry-after']).toBe('60');
  expect(refused.json).toMatchObject({
    code: 'too_many_uploads',
    detail: 'At most 3 resumable uploads of this key may be incomplete: complete or cancel some',
  });

  const fourth = await begin(10, second);
  expect(fourth.status).toBe(201);
  expect((await begin(10, second)).json).toMatchObject({
    detail: 'At most 4 resumable uploads of the organization may be incomplete: complete or cancel some',
  });
  // Another organization has a quota of its own.
  const foreign = await begin(10, api.foreignKey);
  expect(foreign.status).toBe(201);

  const [done, cancelled, left] = own.filter(({ status }) => status === 201).map(addressOf);
  expect((await complete(done!, 10, first)).status).toBe(204);
  const fifth = await begin(10, second);
  expect(fifth.status).toBe(201);
  expect((await api.call('DELETE', cancelled!, undefined, {}, first)).status).toBe(204);
  const again = { 'idempotency-key': 'same-upload' };
  const sixth = await begin(10, first, again);
  expect(sixth.status).toBe(201);
  // A repeated request counts once.
  expect((await begin(10, first, again)).json.id).toBe(sixth.json.id);
  const others = [fourth, fifth, sixth].map(addressOf);
  for (const address of [left!, ...others]) await api.call('DELETE', address, undefined, {}, first);
});

it('counts the declared bytes, and refuses what never fits', async () => {
  const [first, second] = [await newKey(), await newKey()];
  expect(await begin(21 * MIB, first)).toMatchObject({
    status: 413,
    json: { code: 'body_too_large', detail: 'Resumable uploads of this key have at most 20 MiB' },
  });
  const large = await begin(20 * MIB, first);
  expect(large.status).toBe(201);
  expect(await begin(1, first)).toMatchObject({
    status: 429,
    json: {
      code: 'upload_quota',
      detail: 'Incomplete resumable uploads of this key have at most 20 MiB together: complete or cancel some',
    },
  });
  expect(await begin(11 * MIB, second)).toMatchObject({
    status: 429,
    json: {
      detail: 'Incomplete resumable uploads of the organization have at most 30 MiB together: complete or cancel some',
    },
  });
  await api.call('DELETE', addressOf(large), undefined, {}, first);
  expect((await begin(11 * MIB, second)).status).toBe(201);
});
