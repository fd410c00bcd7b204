/** The example feature of docs/adding-a-feature.md on real stores: tests each statement of that page. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import { buildHttpServer, type HttpServer, type Principal, RedisIdempotencyStore } from '#libs/platform/http/index.ts';
import { decodeLiveMessage, entityTopic } from '#libs/platform/live/index.ts';
import { type Core, openCore } from '#libs/platform/runtime/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { startReactors } from '#services/worker/role.ts';
import { createNotes, notesModule } from '#test/support/notes/index.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';

/** The organizations of the two keys that the server accepts. */
const [ours, theirs] = [newId(), newId()];

let test: TestPlatform;
let core: Core;
let server: HttpServer;
let notes: ReturnType<typeof createNotes>;

beforeAll(async () => {
  test = await startTestPlatform();
  core = openCore(test.platform, notesModule.projections);
  // The log is empty, so the read models hold all of it.
  await core.state.save(await core.state.begin(), null, true);
  notes = createNotes(core, async (question) => `${question.length}`);
  server = await buildHttpServer({
    routes: notes.routes,
    authenticator: { authenticate: principalOf },
    idempotency: new RedisIdempotencyStore(test.platform.redis),
    tokenSecret: test.platform.tokenSecret,
    metrics: test.platform.metrics,
    rateLimits: { perKey: false, perAddress: false },
    info: { title: 'Notes', version: '1' },
  });
});
afterAll(async () => {
  await server?.close();
  await test?.stop();
});

function principalOf(key: string): Principal {
  const principal = { principalType: 'service', principalId: 'test', keyId: key, expiresAtMs: null } as const;
  return { ...principal, organizationId: key, scopes: new Set(['read', 'write']), isMember: false };
}

async function call(method: 'GET' | 'POST' | 'PATCH', path: string, body?: object, headers: object = {}, key = ours) {
  const url = `/api/v1/notes${path}`;
  const request = { method, url, headers: { authorization: key, ...headers } };
  const reply = await server.app.inject(body === undefined ? request : { ...request, payload: body });
  const { statusCode: status, payload: bytes, headers: sent } = reply;
  return { status, bytes, headers: sent, json: bytes === '' ? null : JSON.parse(bytes) };
}

const create = async (text: string): Promise<{ id: string }> => (await call('POST', '', { text })).json;

describe('a note', () => {
  it('is created, read and changed, with an ETag and a position', async () => {
    const created = await call('POST', '', { text: 'buy milk' });
    const { id } = created.json;
    expect(created.json).toMatchObject({ text: 'buy milk', answer: null });
    const rewritten = await call('PATCH', `/${id}`, { text: 'buy oat milk' }, { 'if-match': created.headers.etag });
    expect(rewritten).toMatchObject({ status: 200, json: { text: 'buy oat milk' } });
    const position = { 'parley-position': rewritten.headers['parley-position'] };
    const read = await call('GET', `/${id}`, undefined, position);
    expect(read).toMatchObject({ status: 200, bytes: rewritten.bytes });
    const cached = { 'if-none-match': read.headers.etag };
    expect((await call('GET', `/${id}`, undefined, cached)).status).toBe(304);
    const stale = await call('PATCH', `/${id}`, { text: 'x' }, { 'if-match': created.headers.etag });
    expect(stale.status).toBe(412);
  });

  it('is shown as of a sequence and as of a time, with the ETag that it had', async () => {
    const created = await call('POST', '', { text: 'as it was' });
    const { id } = created.json;
    const rewritten = await call('PATCH', `/${id}`, { text: 'as it is' });
    const { createdAt } = (await notes.notes.find(ours, id)) ?? { createdAt: '' };
    const earlier = new Date(Date.parse(createdAt) - 1).toISOString();

    for (const [point, then] of [
      ['1', created],
      ['2', rewritten],
      ['999', rewritten],
      ['2999-01-01T00:00:00Z', rewritten],
    ] as const) {
      const past = await call('GET', `/${id}?as_of=${point}`);
      expect(past).toMatchObject({ status: 200, bytes: then.bytes, headers: { etag: then.headers.etag } });
    }
    const tag = { 'if-none-match': created.headers.etag };
    expect((await call('GET', `/${id}?as_of=1`, undefined, tag)).status).toBe(304);
    expect((await call('GET', `/${id}?as_of=2`, undefined, tag)).status).toBe(200);
    for (const point of ['0', earlier]) expect((await call('GET', `/${id}?as_of=${point}`)).status).toBe(404);
    expect((await call('GET', `/${id}?as_of=1`, undefined, {}, theirs)).status).toBe(404);
    expect((await call('GET', `/${id}?as_of=then`)).status).toBe(422);
  });

  it('refuses to fold a long past', async () => {
    const { id } = await create('0');
    const events = Array.from(
      { length: 500 },
      (_, index) => ({ type: 'NoteRewritten.v1', data: { text: `${index}` } }) as const,
    );
    for (let appended = 0; appended < 5_000; appended += events.length) {
      const context = {
        commandId: newId(),
        organizationId: ours,
        actor: { type: 'service', id: 'test' },
        at: new Date().toISOString(),
      } as const;
      await notes.notes.run(context, id, () => ({ ok: true, events }));
    }
    expect((await call('GET', `/${id}?as_of=5000`)).json.text).toBe('498');
    const refused = await call('GET', `/${id}?as_of=5001`);
    expect(refused.json.detail).toMatchObject([
      { loc: ['query', 'as_of'], msg: 'Value error, more than 5000 events happened until then', input: '5001' },
    ]);
  });

  it('of another organization is answered byte for byte as a missing one', async () => {
    const { id } = await create('ours');
    for (const [method, body] of [['GET'], ['PATCH', { text: 'theirs' }]] as const) {
      const foreign = await call(method, `/${id}`, body, {}, theirs);
      const missing = await call(method, `/${newId()}`, body, {}, theirs);
      expect(foreign.status).toBe(404);
      expect(foreign.bytes).toBe(missing.bytes);
    }
    expect((await call('GET', '', undefined, {}, theirs)).json.items).toEqual([]);
  });

  it('is published to subscribers once it is applied', async () => {
    const { id } = await create('first');
    const frames: object[] = [];
    const listening = Promise.withResolvers<void>();
    const subscription = test.platform.topics.subscribe(entityTopic('note', ours, id), {
      onMessage: (message) => {
        for (const item of decodeLiveMessage(message)) {
          if (item.kind === 'event') frames.push(JSON.parse(item.json.toString()));
        }
      },
      onListening: listening.resolve,
      onInterrupted: () => undefined,
    });
    await listening.promise;
    await call('PATCH', `/${id}`, { text: 'second' });
    await eventually(() =>
      expect(frames).toMatchObject([{ seq: 2, type: 'note.changed', data: { id, text: 'second' } }]),
    );
    subscription.stop();
  });

  it('is answered by the reactor, once, and does not change any more', async () => {
    const { id } = await create('What is the answer?');
    const context = { platform: test.platform, features: core, logChecked: Promise.resolve() };
    const worker = await startReactors(context, notes.reactors);
    await eventually(async () => expect((await call('GET', `/${id}`)).json.answer).toBe('19'));
    expect(await call('PATCH', `/${id}`, { text: 'x' })).toMatchObject({ status: 409, json: { code: 'answered' } });
    const { items } = (await call('GET', '?is_answered=true')).json;
    expect(items).toContainEqual(expect.objectContaining({ id }));
    await worker.stop();
  });
});
