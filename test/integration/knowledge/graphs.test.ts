import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { factsOfDocument } from '#test/support/knowledge/facts.ts';
import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';

const GRAPHS = '/api/v1/knowledge';

let api: TestApi;
/** Key of another organization. */
let foreignKey: string;

beforeAll(async () => {
  api = await startTestApi();
  const organization = await call('POST', '/api/v1/organizations', { name: 'Other' });
  const organizationId = organization.json.id;
  const user = await call('POST', '/api/v1/users', { organization_id: organizationId });
  const key = await call('POST', '/api/v1/keys', {
    name: 'other',
    scopes: ['read', 'write'],
    principal: { type: 'user', id: user.json.id },
    access: 'organization',
    organization_id: organizationId,
  });
  foreignKey = key.json.key;
});
afterAll(() => api.stop());

function call(
  method: Call['method'],
  url: string,
  body?: object,
  headers: Record<string, string> = {},
  key = api.rootKey,
): Promise<Answer> {
  return api.call({ method, url, key, headers, ...(body !== undefined && { body }) });
}

async function createGraph(body: object = { name: 'Scientists' }): Promise<string> {
  const created = await call('POST', GRAPHS, body);
  expect(created.status).toBe(200);
  return created.json.id;
}

const addFacts = (id: string, facts: object, headers = {}) => call('POST', `${GRAPHS}/${id}/facts`, facts, headers);

async function facts(id: string, body: object): Promise<{ nodes: Found[]; edges: Found[] }> {
  const added = await addFacts(id, body);
  expect(added.status).toBe(200);
  return added.json;
}
type Found = { readonly uuid: string; readonly [name: string]: unknown };

const operator = (): CommandContext => ({
  commandId: newId(),
  organizationId: api.organizationId,
  actor: { type: 'system', id: 'test' },
  at: new Date().toISOString(),
});

describe('a graph', () => {
  it('is created empty, listed, changed and read, with an ETag', async () => {
    const created = await call('POST', GRAPHS, { name: 'People' });
    const { id } = created.json;
    expect(created.json).toEqual({
      id,
      name: 'People',
      description: null,
      created: created.json.modified,
      modified: created.json.modified,
      node_count: 0,
      edge_count: 0,
      document_count: 0,
    });
    const changed = await call('PATCH', `${GRAPHS}/${id}`, { description: 'Who they are' });
    expect(changed.json).toMatchObject({ name: 'People', description: 'Who they are' });
    const read = await call('GET', `${GRAPHS}/${id}`);
    expect(read.bytes).toBe(changed.bytes);
    expect(read.headers.etag).toBe(changed.headers.etag);
    expect((await call('GET', GRAPHS)).json.items[0]).toEqual(read.json);
    const named = await call('GET', `${GRAPHS}?name=People`);
    expect(named.json).toMatchObject({ items: [{ id }], meta: { total: 1 } });
    const etag = String(read.headers.etag);
    expect((await call('GET', `${GRAPHS}/${id}`, undefined, { 'if-none-match': etag })).status).toBe(304);
    const stale = { 'if-match': String(created.headers.etag) };
    expect((await call('PATCH', `${GRAPHS}/${id}`, { name: 'x' }, stale)).status).toBe(412);
    expect((await addFacts(id, { nodes: [{ name: 'Ada' }] }, stale)).status).toBe(412);
    expect((await call('PATCH', `${GRAPHS}/${id}`, { name: 'x' }, { 'if-match': etag })).status).toBe(200);
  });

  it('counts its facts, and has another ETag after each change of the counts', async () => {
    const id = await createGraph();
    const before = await call('GET', `${GRAPHS}/${id}`);
    await facts(id, { nodes: [{ name: 'Ada' }], edges: [{ source: 'Ada', target: 'Bob', fact: 'Ada knows Bob' }] });
    const after = await call('GET', `${GRAPHS}/${id}`, undefined, { 'if-none-match': String(before.headers.etag) });
    expect(after.json).toMatchObject({ node_count: 2, edge_count: 1, document_count: 0 });
    await api.features.knowledge.learn(operator(), id, [factsOfDocument('document-1', 0, ['Ada', 'Carol', 'Dan'])]);
    expect((await call('GET', `${GRAPHS}/${id}`)).json).toMatchObject({
      node_count: 5,
      edge_count: 3,
      document_count: 1,
    });
  });

  it('is read as it was at a sequence or a time, with the ETag of that revision', async () => {
    const created = await call('POST', GRAPHS, { name: 'First' });
    const { id } = created.json;
    const states = [created];
    for (const change of [{ name: 'Second' }, { description: 'Of people' }, { name: 'Third', description: null }]) {
      states.push(await call('PATCH', `${GRAPHS}/${id}`, change));
      await facts(id, { nodes: [{ name: `Person ${states.length}` }] });
      states.push(await call('GET', `${GRAPHS}/${id}`));
    }
    const at = (as_of: string, headers = {}) =>
      call('GET', `${GRAPHS}/${id}?${new URLSearchParams({ as_of })}`, undefined, headers);
    for (const state of states) {
      const etag = String(state.headers['etag']);
      const sequence = Number(JSON.parse(etag)) + 1;
      const read = await at(String(sequence));
      expect([read.bytes, read.headers['etag']]).toEqual([state.bytes, etag]);
      expect((await at(String(sequence), { 'if-none-match': etag })).status).toBe(304);
    }
    const last = states.at(-1)!;
    for (const end of ['1000', '2200-01-01T00:00:00Z']) expect((await at(end)).bytes).toBe(last.bytes);
    // Several changes may have the same time: the last of them counts.
    const first = await at(created.json.created);
    expect(first.json).toMatchObject({ id, created: created.json.created, modified: created.json.created });
    for (const before of ['0', '2001-01-01T00:00:00Z']) expect((await at(before)).status).toBe(404);
    for (const wrong of ['-1', 'soon', '']) {
      expect(await at(wrong)).toMatchObject({ status: 422, json: { detail: [{ loc: ['query', 'as_of'] }] } });
    }
  });

  it('is not read at a time before it was deleted, nor by another organization', async () => {
    const id = await createGraph();
    const url = `${GRAPHS}/${id}?as_of=1`;
    const missing = await call('GET', `${GRAPHS}/${newId()}?as_of=1`, undefined, {}, foreignKey);
    expect(missing.status).toBe(404);
    expect((await call('GET', url, undefined, {}, foreignKey)).bytes).toBe(missing.bytes);
    expect((await call('GET', url)).status).toBe(200);
    expect((await call('DELETE', `${GRAPHS}/${id}`)).status).toBe(204);
    expect((await call('GET', url)).status).toBe(404);
  });

  it('has one body for each ETag, also while it learns', async () => {
    const id = await createGraph();
    const bodies = new Map<string, string>();
    const learning = new AbortController();
    const note = ({ headers, bytes }: Answer) => {
      const etag = String(headers['etag']);
      expect(bodies.get(etag) ?? bytes).toBe(bytes);
      bodies.set(etag, bytes);
    };
    const reading = Array.from({ length: 4 }, async () => {
      while (!learning.signal.aborted) note(await call('GET', `${GRAPHS}/${id}`));
    });
    for (let index = 0; index < 30; index++) {
      await Promise.all([
        facts(id, { nodes: [{ name: `one ${index}` }] }),
        api.features.knowledge.learn(operator(), id, [
          factsOfDocument(`document ${index}`, 0, ['Ada', `two ${index}`]),
        ]),
        call('PATCH', `${GRAPHS}/${id}`, { name: `name ${index}` }).then(note),
      ]);
    }
    learning.abort();
    await Promise.all(reading);
    const last = await call('GET', `${GRAPHS}/${id}`);
    note(last);
    expect(last.json).toMatchObject({ node_count: 61, edge_count: 30, document_count: 30 });
    expect(bodies.size).toBeGreaterThan(30);
  });

  it('that is deleted is answered like a missing one, everywhere', async () => {
    const id = await createGraph();
    await facts(id, { nodes: [{ name: 'Ada' }] });
    const deleted = await call('DELETE', `${GRAPHS}/${id}`);
    expect([deleted.status, deleted.bytes]).toEqual([204, '']);
    const position = { 'parley-position': String(deleted.headers['parley-position']) };
    const missing = await call('GET', `${GRAPHS}/${newId()}`);
    expect(await call('GET', `${GRAPHS}/${id}`, undefined, position)).toMatchObject({
      status: 404,
      bytes: missing.bytes,
    });
    expect((await call('DELETE', `${GRAPHS}/${id}`)).status).toBe(404);
    expect((await call('PATCH', `${GRAPHS}/${id}`, { name: 'x' })).status).toBe(404);
    expect((await addFacts(id, {})).status).toBe(404);
    expect(await call('GET', `${GRAPHS}/${id}/search`)).toMatchObject({ status: 404, bytes: missing.bytes });
    const { items, meta } = (await call('GET', `${GRAPHS}?size=100`)).json;
    expect(items.map((graph: Found) => graph['id'])).not.toContain(id);
    expect(meta.total).toBe(items.length);
    const { knowledge } = api.features;
    expect(await knowledge.graph(api.organizationId, id)).toBeNull();
    expect(await knowledge.search(api.organizationId, id, { query: '*', limit: 1 })).toBeNull();
    const refused = { ok: false, rejection: { reason: 'not_found' } };
    expect(await knowledge.learn(operator(), id, [factsOfDocument('document-1', 0, ['Ada'])])).toEqual(refused);
    expect(await knowledge.withdraw(operator(), id, 'document-1', null)).toEqual(refused);
  });

  it('of another organization is answered byte for byte as a missing one', async () => {
    const id = await createGraph();
    const requests = [
      ['GET', '', undefined],
      ['PATCH', '', { name: 'theirs' }],
      ['DELETE', '', undefined],
      ['GET', '/search?query=Ada', undefined],
      ['POST', '/facts', { nodes: [{ name: 'Eve' }] }],
      ['POST', '/facts', { edges: [{ source: newId(), target: 'Eve', fact: 'known to Eve' }] }],
    ] as const;
    for (const [method, path, body] of requests) {
      const foreign = await call(method, `${GRAPHS}/${id}${path}`, body, {}, foreignKey);
      const missing = await call(method, `${GRAPHS}/${newId()}${path}`, body, {}, foreignKey);
      expect(foreign.status).toBe(404);
      expect(foreign.bytes).toBe(missing.bytes);
    }
    expect((await call('GET', GRAPHS, undefined, {}, foreignKey)).json.items).toEqual([]);
    expect((await call('GET', `${GRAPHS}/${id}`)).json).toMatchObject({ name: 'Scientists', node_count: 0 });
  });

  it('is created once for each idempotency key', async () => {
    const key = { 'idempotency-key': newId() };
    const first = await call('POST', GRAPHS, { name: 'Once' }, key);
    const again = await call('POST', GRAPHS, { name: 'Once' }, key);
    expect(again.bytes).toBe(first.bytes);
    expect((await call('POST', GRAPHS, { name: 'Twice' }, key)).status).toBe(422);
  });

  it('needs a name that can be seen', async () => {
    for (const body of [{}, { name: '' }, { name: ' \n ' }, { name: 'x'.repeat(257) }, { name: null }, { name: 5 }]) {
      expect((await call('POST', GRAPHS, body)).status).toBe(422);
    }
    const id = await createGraph();
    expect((await call('PATCH', `${GRAPHS}/${id}`, { name: null })).status).toBe(422);
  });
});
