/* Paging, entity tags, idempotency keys and positions, tested on channels over HTTP. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient, Reply } from '#test/support/api-client.ts';
import { asRecord } from '#test/support/log-reader.ts';
import { listChannels } from '#test/support/observation.ts';
import { startParleyHere, type ParleyHere } from '#test/support/parley-here.ts';
import { newTenant } from '#test/support/tenants.ts';

let parley: ParleyHere;
const tenants: ApiClient[] = [];

beforeAll(async () => {
  parley = await startParleyHere();
});

afterAll(async () => {
  for (const tenant of tenants) tenant.close();
  await parley?.stop();
});

/** A new organization for each test, whose lists hold only what the test has made. */
async function organization(): Promise<ApiClient> {
  const { api } = await newTenant(parley.api);
  tenants.push(api);
  return api;
}

async function create(api: ApiClient, body: object = {}): Promise<string> {
  return String(asRecord((await api.post('/api/v1/channels', { name: 'x', participants: [], ...body })).json())['id']);
}

async function createMany(api: ApiClient, count: number, body: object = {}): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) ids.unshift(await create(api, body));
  return ids;
}

interface Page {
  readonly ids: string[];
  readonly meta: Record<string, unknown>;
}

async function page(api: ApiClient, query: string): Promise<Page> {
  const reply = await api.get(`/api/v1/channels?${query}`);
  if (reply.status !== 200) throw new Error(`${reply.status} ${reply.text}`);
  const { items, meta } = asRecord(reply.json());
  return { ids: (Array.isArray(items) ? items : []).map((item) => String(asRecord(item)['id'])), meta: asRecord(meta) };
}

describe('a list', () => {
  it('is newest first, page by page, and a page past the end is empty', async () => {
    const api = await organization();
    const ids = await createMany(api, 25);
    const pages = [await page(api, 'size=10'), await page(api, 'size=10&page=2'), await page(api, 'size=10&page=3')];
    expect(pages.flatMap((one) => one.ids)).toEqual(ids);
    const next_cursor: unknown = expect.any(String);
    expect(pages.map(({ meta }) => meta)).toEqual([
      { total: 25, has_next: true, has_previous: false, page: 1, next_cursor },
      { total: 25, has_next: true, has_previous: true, page: 2, next_cursor },
      { total: 25, has_next: false, has_previous: true, page: 3, next_cursor: null },
    ]);
    expect(await page(api, 'size=10&page=4')).toEqual({
      ids: [],
      meta: { total: 25, has_next: false, has_previous: true, page: 4, next_cursor: null },
    });
  });

  it('continues after a cursor without gap or duplicate, though rows are added and removed', async () => {
    const api = await organization();
    const ids = await createMany(api, 12);
    const first = await page(api, 'size=5');
    await createMany(api, 7);
    await api.post(`/api/v1/channels/${first.ids[0]}/archive`);
    const second = await page(api, `size=5&cursor=${String(first.meta['next_cursor'])}`);
    // The row of the cursor is removed, too.
    await api.post(`/api/v1/channels/${second.ids[4]}/archive`);
    const third = await page(api, `size=5&cursor=${String(second.meta['next_cursor'])}`);
    expect([...first.ids, ...second.ids, ...third.ids]).toEqual(ids);
    expect(third.meta).toMatchObject({ has_next: false, has_previous: true, page: 3, next_cursor: null });
  });

  it('accepts a cursor only unchanged, for the same filter and organization', async () => {
    const [api, other] = [await organization(), await organization()];
    await createMany(api, 3, { type: 'sms' });
    await createMany(other, 3, { type: 'sms' });
    const cursor = String((await page(api, 'size=1&type=sms')).meta['next_cursor']);
    expect((await page(api, `size=2&type=sms&cursor=${cursor}`)).ids).toHaveLength(2);
    const flipped = `${cursor.slice(0, 5)}${cursor[5] === 'A' ? 'B' : 'A'}${cursor.slice(6)}`;
    const refused = [
      await api.get(`/api/v1/channels?size=1&type=sms&cursor=${flipped}`),
      await api.get(`/api/v1/channels?size=1&type=sms&cursor=${cursor.slice(0, -2)}`),
      await api.get(`/api/v1/channels?size=1&cursor=${cursor}`),
      await api.get(`/api/v1/channels?size=1&type=websocket&cursor=${cursor}`),
      await other.get(`/api/v1/channels?size=1&type=sms&cursor=${cursor}`),
    ];
    for (const reply of refused) {
      expect(reply.status).toBe(422);
      expect(reply.json()).toMatchObject({ detail: [{ loc: ['query', 'cursor'] }] });
    }
  });

  it('holds exactly the rows that match all filters, and never those of another organization', async () => {
    const [api, other] = [await organization(), await organization()];
    await createMany(other, 2, { source: 'health' });
    const sms = await create(api, { type: 'sms', source: 'health' });
    const chat = await create(api, { channel_type: 'collaboration', source: 'health' });
    const agent = String(asRecord((await api.post('/api/v1/agents', { name: 'Ada' })).json())['id']);
    await create(api, { participants: [{ type: 'agent', id: agent }] });
    expect((await page(api, 'source=health')).ids).toEqual([chat, sms]);
    expect((await page(api, 'source=health&type=sms')).ids).toEqual([sms]);
    expect((await page(api, 'source=health&type=sms&channel_type=collaboration')).ids).toEqual([]);
    expect((await page(api, `agent=${agent}`)).ids).toHaveLength(1);
    expect((await page(api, 'is_owner=true')).ids).toHaveLength(3);
    expect((await page(api, 'is_owner=false')).ids).toEqual([]);
    expect(await listChannels(other)).toHaveLength(2);
  });
});

describe('entity tags', () => {
  it('let a write pass that names the latest state, and refuse others with 412', async () => {
    const api = await organization();
    const id = await create(api);
    const path = `/api/v1/channels/${id}`;
    const write = (ifMatch: string) => api.patch(path, { name: randomUUID() }, { headers: { 'if-match': ifMatch } });
    const etag = (await api.get(path)).headers.etag ?? '';
    const first = await write(etag);
    expect(first.status).toBe(200);
    for (const stale of [etag, '"999"', `W/${first.headers.etag}`, 'nonsense', '""']) {
      const reply = await write(stale);
      expect(reply.status).toBe(412);
      expect(reply.json()).toMatchObject({ detail: expect.any(String) });
    }
    expect((await api.get(path)).text).toBe(first.text);
    const second = await write(`"7", ${first.headers.etag}`);
    expect(second.status).toBe(200);
    expect((await write('*')).status).toBe(200);
    const archive = await api.post(`${path}/archive`, undefined, { headers: { 'if-match': etag } });
    expect(archive.status).toBe(412);
  });

  it('save a reader the body that it already has', async () => {
    const api = await organization();
    const path = `/api/v1/channels/${await create(api)}`;
    const etag = (await api.get(path)).headers.etag ?? '';
    for (const known of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
      const reply = await api.get(path, { headers: { 'if-none-match': known } });
      expect(reply).toMatchObject({ status: 304, text: '' });
      expect(reply.headers.etag).toBe(etag);
    }
    await api.patch(path, { name: 'new' });
    expect((await api.get(path, { headers: { 'if-none-match': etag } })).status).toBe(200);
  });
});

describe('idempotency keys', () => {
  const under = (key: string) => ({ headers: { 'idempotency-key': key } });
  const essence = ({ status, text, headers }: Reply): object => ({
    status,
    text,
    etag: headers.etag,
    position: headers['parley-position'],
    type: headers['content-type'],
  });

  it('replay the same answer, whatever has happened since, and do nothing', async () => {
    const api = await organization();
    const key = randomUUID();
    const first = await api.post('/api/v1/channels', { name: 'x', meta_data: { a: 1, b: 2 } }, under(key));
    expect(first.headers['idempotency-replayed']).toBeUndefined();
    const path = `/api/v1/channels/${String(asRecord(first.json())['id'])}`;
    await api.patch(path, { name: 'changed since' });
    // The same content, in another order.
    const again = await api.post('/api/v1/channels', '{"meta_data":{"b":2,"a":1}, "name":"x"}', under(key));
    expect(essence(again)).toEqual(essence(first));
    expect(again.headers['idempotency-replayed']).toBe('true');
    expect(await listChannels(api)).toHaveLength(1);
    expect((await api.get(path)).json()).toMatchObject({ name: 'changed since' });
  });

  it('are refused for another request, and belong to one caller', async () => {
    const [api, other] = [await organization(), await organization()];
    const key = randomUUID();
    const id = await create(api);
    const first = await api.patch(`/api/v1/channels/${id}`, { name: 'once' }, under(key));
    expect(first.status).toBe(200);
    for (const reply of [
      await api.patch(`/api/v1/channels/${id}`, { name: 'twice' }, under(key)),
      await api.post('/api/v1/channels', { name: 'once' }, under(key)),
    ]) {
      expect(reply.status).toBe(422);
      expect(reply.json()).toMatchObject({ detail: [{ loc: ['header', 'idempotency-key'] }] });
    }
    const theirs = await other.post('/api/v1/channels', { name: 'theirs' }, under(key));
    expect(theirs.status).toBe(200);
    expect(theirs.headers['idempotency-replayed']).toBeUndefined();
  });

  it('are not used up by a request with invalid input', async () => {
    const api = await organization();
    const key = randomUUID();
    expect((await api.post('/api/v1/channels', { name: 5 }, under(key))).status).toBe(422);
    expect((await api.post('/api/v1/channels', { name: 'right' }, under(key))).status).toBe(200);
    const id = await create(api);
    const stale = { headers: { 'idempotency-key': randomUUID(), 'if-match': '"9"' } };
    expect((await api.patch(`/api/v1/channels/${id}`, { name: 'y' }, stale)).status).toBe(412);
    expect((await api.patch(`/api/v1/channels/${id}`, { name: 'y' }, stale)).status).toBe(412);
  });
});

describe('positions', () => {
  it('make a read wait for the write, and belong to one organization', async () => {
    const [api, other] = [await organization(), await organization()];
    const id = await create(api);
    const written = await api.patch(`/api/v1/channels/${id}`, { name: 'seen' });
    const headers = { 'parley-position': written.headers['parley-position'] };
    for (const path of [`/api/v1/channels/${id}`, '/api/v1/channels']) {
      const reply = await api.get(path, { headers });
      expect(reply.status).toBe(200);
      expect(reply.text).toContain('"seen"');
    }
    expect((await other.get('/api/v1/channels', { headers })).status).toBe(422);
  });
});
