/** UUIDs in every form that RFC 9562 and pydantic accept: upper case, and without hyphens, on every route alike. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;
const ids: Record<string, string> = {};

beforeAll(async () => {
  api = await startTestApi();
  const create = async (name: string, url: string, body: object) => {
    ids[name] = (await call('POST', url, body)).json.id;
  };
  await create('graph', '/api/v1/knowledge', { name: 'G' });
  await create('agent', '/api/v1/agents', { name: 'A', knowledge_graph: ids['graph'] });
  await create('document', '/api/v1/documents', { knowledge_graph: ids['graph'], text: 'Word' });
  await create('report', '/api/v1/reports', { query: 'q' });
  await create('crawl', '/api/v1/crawls', { url: 'http://example.com/' });
  await create('media', '/api/v1/media', { knowledge_graph: ids['graph'] });
  await create('channel', '/api/v1/channels', { name: 'C', participants: [{ type: 'agent', id: ids['agent'] }] });
});
afterAll(() => api.stop());

const call = (method: Call['method'], url: string, body?: object): Promise<Answer> =>
  api.call({ method, url, key: api.rootKey, ...(body && { body }) });

const FORMS: readonly [string, (id: string) => string][] = [
  ['in upper case', (id) => id.toUpperCase()],
  ['without hyphens', (id) => id.replaceAll('-', '')],
  ['in upper case without hyphens', (id) => id.replaceAll('-', '').toUpperCase()],
];

describe.each(FORMS)('a UUID %s', (_form, formed) => {
  const of = (name: string): string => formed(ids[name] ?? '');

  it.each([
    ['agent', 'agents'],
    ['document', 'documents'],
    ['report', 'reports'],
    ['crawl', 'crawls'],
    ['media', 'media'],
    ['channel', 'channels'],
    ['graph', 'knowledge'],
  ])('finds the %s that it names', async (name, route) => {
    const found = await call('GET', `/api/v1/${route}/${of(name)}`);
    expect([found.status, found.json.id]).toEqual([200, ids[name]]);
  });

  it('names it in bodies, filters and commands', async () => {
    const channel = await call('PATCH', `/api/v1/channels/${of('channel')}`, { name: 'D' });
    expect(channel.json).toMatchObject({ id: ids['channel'], name: 'D' });
    const ticket = await call('POST', `/api/v1/channels/${of('channel')}/websocket_ticket`);
    expect(ticket.json.channel_id).toBe(ids['channel']);
    const thread = { name: 'T', parent_channel_id: of('channel'), participants: [{ type: 'agent', id: of('agent') }] };
    const created = await call('POST', '/api/v1/channels', thread);
    expect(created.json).toMatchObject({ parent_channel_id: ids['channel'], participants: [{ id: ids['agent'] }] });
    for (const url of [
      `/api/v1/channels?agent=${of('agent')}&parent_channel_id=${of('channel')}`,
      `/api/v1/agents?knowledge_graph=${of('graph')}`,
      `/api/v1/documents?knowledge_graph=${of('graph')}`,
      `/api/v1/media?knowledge_graph=${of('graph')}`,
    ]) {
      expect({ url, total: (await call('GET', url)).json.meta.total }).not.toEqual({ url, total: 0 });
    }
    const participant = { type: 'authenticated_user', user_id: formed(api.userId) };
    const posted = await call('POST', `/api/v1/channels/${of('channel')}/interactions`, { content: [], participant });
    expect(posted.json.participant.user_id).toBe(api.userId);
    const sender = { type: 'agent', agent_id: of('agent') };
    const said = await call('POST', `/api/v1/channels/${of('channel')}/interactions`, {
      content: [],
      participant: sender,
    });
    expect(said.json.participant.agent_id).toBe(ids['agent']);
    const prompted = await call('POST', `/api/v1/agents/${of('agent')}/prompt`, { prompt: 1 });
    expect(prompted.json.detail).toMatchObject([{ loc: ['body', 'prompt'] }]);
  });

  it('stays as it is where the client defines the id', async () => {
    const given = { span_id: of('report'), interaction_id: of('crawl') };
    const posted = await call('POST', `/api/v1/channels/${ids['channel']}/interactions`, { content: [], ...given });
    expect(posted.json).toMatchObject(given);
  });
});

describe('values that the contract leaves to the server', () => {
  it('are strings where it has strings, and errors of the value where they cannot be used', async () => {
    const { agent } = ids;
    for (const [method, url, field] of [
      ['POST', '/api/v1/crawls', 'url'],
      ['POST', '/api/v1/media', 'source_url'],
      ['PATCH', `/api/v1/agents/${agent}`, 'website'],
    ] as const) {
      for (const value of ['x', '', 'ftp://example.com', 'javascript:alert(1)', 'http://', 'http://a:b']) {
        const refused = await call(method, url, { [field]: value });
        const [error] = refused.json.detail;
        expect([refused.status, error.type, error.loc, error.input]).toEqual([
          422,
          'value_error',
          ['body', field],
          value,
        ]);
      }
      const [typed] = (await call(method, url, { [field]: 1 })).json.detail;
      expect(typed).toMatchObject({ type: 'string_type', loc: ['body', field] });
      const [long] = (await call(method, url, { [field]: `http://example.com/${'a'.repeat(2_083)}` })).json.detail;
      expect(long).toMatchObject({ type: 'string_too_long', loc: ['body', field] });
    }
  });

  it('are parsed as numbers, and not converted', async () => {
    const error = async (scan_depth: unknown) =>
      (await call('POST', '/api/v1/crawls', { url: 'http://example.com/', scan_depth })).json.detail[0].type;
    expect([await error('x'), await error('2'), await error(1.5)]).toEqual([
      'int_parsing',
      'int_type',
      'int_from_float',
    ]);
  });

  it('list active crawls, those that were deactivated, and both', async () => {
    const other = (await call('POST', '/api/v1/crawls', { url: 'http://example.com/b', max_pages: 7 })).json;
    expect(other.max_pages).toBe(50);
    await call('DELETE', `/api/v1/crawls/${other.id}`);
    const listed = async (query: string) => {
      const { items } = (await call('GET', `/api/v1/crawls${query}`)).json;
      return items.map(({ id }: { id: string }) => id);
    };
    expect(await listed('')).toEqual([ids['crawl']]);
    expect(await listed('?is_active=true')).toEqual([ids['crawl']]);
    expect(await listed('?is_active=false')).toEqual([other.id]);
    expect(await listed('?is_active=null')).toEqual([other.id, ids['crawl']]);
    expect((await call('GET', '/api/v1/crawls?is_active=none')).json.detail[0].type).toBe('bool_parsing');
  });
});
