/** The event stream of one entity, as `GET /api/v1/notes/{id}/events` of the example feature answers it. */
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { streamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { grantFor } from '#libs/platform/entity/index.ts';
import { buildHttpServer, type HttpServer, type Principal } from '#libs/platform/http/index.ts';
import {
  EntityEventStream,
  encodeHead,
  entityTopic,
  FRAME_FLAG,
  type LiveAccess,
  LiveNode,
} from '#libs/platform/live/index.ts';
import { openCore, publishedHeads } from '#libs/platform/runtime/index.ts';
import { serviceCommand } from '#test/support/commands.ts';
import { eventually } from '#test/support/eventually.ts';
import { createNotes, notesModule } from '#test/support/notes/index.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';

/** The organizations of the keys that the server accepts, until their keys end. */
const [ours, theirs] = [newId(), newId()];
const endedKeys = new Set<string>();

const access: LiveAccess = {
  check: async ({ keyId }) => (endedKeys.has(keyId) ? 'lost' : { expiresAtMs: null, ageMs: 0 }),
  usersOf: async () => null,
  onChange: () => () => undefined,
};

let test: TestPlatform;
let node: LiveNode;
let notes: ReturnType<typeof createNotes>;
let server: HttpServer;
let origin: string;
let clients: AbortController;

beforeAll(async () => {
  test = await startTestPlatform();
  const core = openCore(test.platform, notesModule.projections);
  await core.state.save(await core.state.begin(), null, true);
  node = core.live();
  node.guard(access);
  notes = createNotes(core, async () => 'yes');
});
beforeEach(async () => {
  clients = new AbortController();
  endedKeys.clear();
  server = await buildHttpServer({
    routes: notes.routes,
    authenticator: { authenticate: principalOf },
    tokenSecret: test.platform.tokenSecret,
    metrics: test.platform.metrics,
    info: { title: 'Notes', version: '1' },
  });
  origin = await server.listen({ host: '127.0.0.1', port: 0 });
});
afterEach(async () => {
  clients.abort();
  await server.close(0);
});
afterAll(async () => {
  await node?.stop();
  await test?.stop();
});

function principalOf(key: string): Principal | null {
  if (endedKeys.has(key)) return null;
  const principal = { principalType: 'service', principalId: 'test', keyId: key, expiresAtMs: null } as const;
  return { ...principal, organizationId: key, scopes: new Set(['read', 'write']), isMember: false };
}

interface Opened {
  readonly response: Response;
  readonly events: {
    readonly id: string | null;
    readonly type: string | null;
    readonly data: { seq: number; code: number };
  }[];
  readonly sequences: () => readonly number[];
  readonly ended: Promise<void>;
}

/** @param headers also `authorization`; ours by default */
async function open(id: string, query = '', headers: Record<string, string> = {}): Promise<Opened> {
  const url = `${origin}/api/v1/notes/${id}/events${query}`;
  const response = await fetch(url, { headers: { authorization: ours, ...headers }, signal: clients.signal });
  const events: Opened['events'] = [];
  return { response, events, sequences: () => events.map(({ data }) => data.seq), ended: read(response, events) };
}

async function read(response: Response, events: Opened['events']): Promise<void> {
  const { signal } = clients;
  if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true) return;
  let text = '';
  try {
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const blocks = (text + chunk).split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks.filter((one) => one !== ':')) {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1] ?? null;
        events.push({ id: field('id'), type: field('event'), data: JSON.parse(field('data') ?? 'null') });
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

async function createNote(text = 'first'): Promise<string> {
  const id = newId();
  await notes.notes.create(serviceCommand(ours), id, { type: 'NoteCreated.v1', data: { id, text } });
  return id;
}

async function rewrite(id: string, text: string): Promise<void> {
  await notes.notes.update(serviceCommand(ours), id, () => ({
    ok: true,
    events: [{ type: 'NoteRewritten.v1', data: { text } }],
  }));
}

/** Appends without publishing, as a process that dies between the two. */
async function appendSilently(id: string, revision: number, text: string): Promise<void> {
  const { at, actor, commandId } = serviceCommand(ours);
  const metadata = { at, organizationId: ours, actor, commandId, $correlationId: commandId, $causationId: commandId };
  const event = { id: newId(), type: 'NoteRewritten.v1', data: { text }, metadata };
  await test.platform.store.append(`note-${id}`, streamRevision(revision - 1), [event]);
}

async function publish(id: string, message: string): Promise<void> {
  const topic = entityTopic('note', ours, id);
  await test.platform.redis.send(topic, (node) => node.spublish(topic, message));
}

describe('the event stream of a note', () => {
  it('sends missed events from the log, and then those that follow', async () => {
    const id = await createNote();
    await rewrite(id, 'second');
    const { response, events } = await open(id, '?after=0');
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    await eventually(() => events.length === 2);
    await rewrite(id, 'third');
    await eventually(() => events.length === 3);
    expect(events.map(({ id: sequence, type }) => [sequence, type])).toEqual([
      ['1', 'note.created'],
      ['2', 'note.changed'],
      ['3', 'note.changed'],
    ]);
    expect(events[2]?.data).toMatchObject({
      frame: 'event',
      seq: 3,
      type: 'note.changed',
      data: { id, text: 'third' },
    });
  });

  it('sends only new events without a position, and the following ones after `Last-Event-ID`', async () => {
    const id = await createNote();
    const fresh = await open(id);
    await rewrite(id, 'second');
    await rewrite(id, 'third');
    await eventually(() => expect(fresh.sequences()).toEqual([2, 3]));
    const resumed = await open(id, '?after=0', { 'last-event-id': '2' });
    await eventually(() => expect(resumed.sequences()).toEqual([3]));
  });

  it('has every event once and in order, whatever its topic loses, repeats and reorders', async () => {
    const id = await createNote();
    const { sequences } = await open(id, '?after=1');
    await appendSilently(id, 1, 'lost');
    await appendSilently(id, 2, 'published before the lost one');
    const frame = JSON.stringify({ frame: 'event', seq: 3, type: 'note.changed', at: '', data: null });
    await publish(id, `E 3 0 ${frame}\nE 3 0 ${frame}\nE 1 0 ${frame}\nnot a line`);
    await eventually(() => expect(sequences()).toEqual([2, 3]));
    await appendSilently(id, 3, 'announced only');
    await publish(id, encodeHead(4 as Parameters<typeof encodeHead>[0]));
    await eventually(() => expect(sequences()).toEqual([2, 3, 4]));
    await publish(id, `E 4 0 ${frame}`);
    await rewrite(id, 'as usual');
    await eventually(() => expect(sequences()).toEqual([2, 3, 4, 5]));
  });

  it('finds by its read model what its topic has lost, without another event', async () => {
    const { topics } = test.platform;
    const subscribe: typeof topics.subscribe = (topic, subscriber) =>
      topics.subscribe(topic, { ...subscriber, onMessage: () => undefined });
    const heads = publishedHeads(test.platform, notesModule.projections);
    const fast = new LiveNode({ ...test.platform, topics: { subscribe } }, { heads }, 20);
    fast.guard(access);
    const id = await createNote();
    const stream = await fast.streams.open(notes.notes.source, { organizationId: ours, id });
    if (stream === null) throw new Error('there is no such note');
    const grant = grantFor(principalOf(ours)!, null);
    const response = new ServerResponse(new IncomingMessage(new Socket()));
    new EntityEventStream(fast, { grant, stream, include: 0 }, response).open(1);
    await rewrite(id, 'second');
    await eventually(() => expect(stream.head).toBe(2));
    response.destroy();
    await fast.stop();
  });

  it('has every event of concurrent writers for clients that join at any time', async () => {
    const id = await createNote();
    const joined: Opened[] = [];
    const writers = [1, 2, 3].map(async (writer) => {
      for (let round = 0; round < 10; round += 1) await rewrite(id, `${writer} ${round}`);
    });
    for (let after = 0; after < 5; after += 1) joined.push(await open(id, '?after=1'));
    await Promise.all(writers);
    const all = Array.from({ length: 30 }, (_, index) => index + 2);
    for (const { sequences } of joined) await eventually(() => expect(sequences()).toEqual(all));
  });

  it('loses nothing for a client that reads slowly', async () => {
    const id = await createNote();
    const url = `${origin}/api/v1/notes/${id}/events?after=1`;
    const response = await fetch(url, { headers: { authorization: ours }, signal: clients.signal });
    // 12 MB: more than the buffers of the system hold.
    for (let round = 0; round < 80; round += 1) await rewrite(id, 'x'.repeat(150_000));
    const events: Opened['events'] = [];
    void read(response, events);
    await eventually(() => expect(events).toHaveLength(80));
    expect(events.map(({ data }) => data.seq)).toEqual(events.map((_, index) => index + 2));
  });
});

describe('the event stream of a note ends', () => {
  it('after the last event, and then answers 204', async () => {
    const id = await createNote();
    const { events, ended } = await open(id, '?after=0');
    await eventually(() => events.length === 1);
    await notes.notes.update(serviceCommand(ours), id, () => ({
      ok: true,
      events: [{ type: 'NoteAnswered.v1', data: { answer: 'yes' } }],
    }));
    await ended;
    expect(events.at(-1)).toMatchObject({ id: null, type: 'close', data: { code: 4504 } });
    expect((await open(id, '', { 'last-event-id': '2' })).response.status).toBe(204);
    expect((await open(id)).response.status).toBe(204);
    const late = await open(id, '?after=1');
    await late.ended;
    expect(late.events.map(({ type }) => type)).toEqual(['note.changed', 'close']);
  });

  it('unless events follow the last one', async () => {
    const id = await createNote();
    const { events, sequences } = await open(id, '?after=1');
    const frame = (seq: number) => JSON.stringify({ frame: 'event', seq, type: 'note.changed', at: '', data: null });
    await publish(id, `E 2 ${FRAME_FLAG.last} ${frame(2)}\nE 3 0 ${frame(3)}`);
    await eventually(() => expect(sequences()).toEqual([2, 3]));
    await publish(id, `E 4 ${FRAME_FLAG.last} ${frame(4)}`);
    await eventually(() => expect(events.at(-1)).toMatchObject({ type: 'close', data: { code: 4504 } }));
    expect(sequences().slice(0, -1)).toEqual([2, 3, 4]);
  });

  it('when its key has ended', async () => {
    const { events, ended } = await open(await createNote());
    endedKeys.add(ours);
    await ended;
    expect(events).toMatchObject([{ type: 'close', data: { code: 4503 } }]);
  });

  it('when the server closes', async () => {
    const { events, ended } = await open(await createNote());
    await server.close();
    await ended;
    expect(events).toMatchObject([{ type: 'close', data: { code: 1012 } }]);
  });
});

describe('the event stream of a note is refused', () => {
  it('byte for byte as a missing one to another organization', async () => {
    const foreign = await open(await createNote(), '?after=0', { authorization: theirs });
    const missing = await open(newId(), '?after=0', { authorization: theirs });
    expect([foreign.response.status, missing.response.status]).toEqual([404, 404]);
    expect(await foreign.response.text()).toBe(await missing.response.text());
  });

  it.each([
    [422, '?after=2', {}],
    [422, '?after=-1', {}],
    [422, '', { 'last-event-id': 'x' }],
    [422, '', { 'last-event-id': '99999999999999999' }],
    [406, '', { accept: 'application/json' }],
  ])('with %i: %s %j', async (status, query, headers: Record<string, string>) => {
    expect((await open(await createNote(), query, headers)).response.status).toBe(status);
  });

  it('beyond 100 of one key, until one of them is closed', async () => {
    const id = await createNote();
    const opened = await Promise.all(Array.from({ length: 100 }, () => open(id)));
    expect(opened.filter(({ response }) => response.status !== 200)).toEqual([]);
    const refused = await open(id);
    expect(refused.response.status).toBe(429);
    expect(await refused.response.json()).toMatchObject({ code: 'too_many_event_streams' });
    expect((await open(await createNote(), '', { authorization: theirs })).response.status).toBe(404);
    clients.abort();
    clients = new AbortController();
    await eventually(async () => expect((await open(id)).response.status).toBe(200));
  });

  it('to HEAD only as far as its body', async () => {
    const url = `${origin}/api/v1/notes/${await createNote()}/events`;
    const head = await fetch(url, { method: 'HEAD', headers: { authorization: ours } });
    expect([head.status, await head.text()]).toEqual([200, '']);
  });
});
