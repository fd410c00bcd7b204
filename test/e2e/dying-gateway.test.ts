/*
 * A gateway dies between append and answer: the same request at another gateway leaves one event and gets its answer.
 * One death interrupts requests of all kinds.
 */
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient, Reply } from '#test/support/api-client.ts';
import { answerOf } from '#test/support/channel-load.ts';
import { startTestEventStore, type TestEventStoreProcess } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { foldInteractions } from '#test/support/interaction-fold.ts';
import { asRecord, readLog, type LogEvent } from '#test/support/log-reader.ts';
import type { ParleyHere } from '#test/support/parley-here.ts';
import { startParleyProcess, type ParleyProcess } from '#test/support/parley-process.ts';
import { startNodeHere } from '#test/support/realtime/nodes.ts';
import { startTestRedis, type TestRedis } from '#test/support/redis.ts';

let eventStore: TestEventStoreProcess;
let redis: TestRedis;
/** Is killed. */
let one: ParleyProcess;
/** Has no projector: everything that it reads was applied by one of the two. */
let other: ParleyHere;
let watches: readonly Redis[] = [];

beforeAll(async () => {
  [eventStore, redis] = await Promise.all([startTestEventStore({ mode: 'process' }), startTestRedis()]);
  const stores = { eventstoreUrl: eventStore.url, redisUrl: redis.url };
  one = await startParleyProcess(stores);
  other = await startNodeHere({ ...stores, apiKey: one.apiKey, env: { ROLES: 'gateway,realtime' } });
  await one.ready();
  watches = await Promise.all(redis.url.split(',').map(watchCalls));
});

afterAll(async () => {
  for (const watch of watches) watch.disconnect();
  // A `beforeAll` that failed may have left them frozen.
  await Promise.all([eventStore?.resume(), redis?.resume()]);
  try {
    await Promise.all([one?.stop(), other?.stop()]);
  } finally {
    await Promise.all([eventStore?.stop(), redis?.stop()]);
  }
});

afterEach(async () => {
  await eventStore.resume();
  await redis.resume();
});

/** Keys of the records of the idempotency keys that were taken. */
const taken = new Set<string>();
/** First key of each look-up, which names the channel. */
let lookUps: string[] = [];

/** @param url of one server */
async function watchCalls(url: string): Promise<Redis> {
  const client = new Redis(url);
  const watch = await client.monitor();
  client.disconnect();
  watch.on('monitor', (_time, [command, name = '', _count, key = '']: string[]) => {
    if (command?.toLowerCase().startsWith('fcall') !== true) return;
    if (name.startsWith('parley_idempotency_begin_')) taken.add(key);
    if (name.startsWith('parley_lookup_')) lookUps.push(key);
  });
  return watch;
}

const lookUpsIn = (channelId: string): number => lookUps.filter((key) => key.includes(channelId)).length;

/** The lease of a dead gateway expires after three seconds; here, at once. */
async function endLeases(): Promise<void> {
  for (const name of taken) await redis.command('HSET', name, 'lease_until', '0');
}

const eventsOf = (id: string) => readLog(eventStore.url, `channel-${id}`);

const isUnder =
  (key: string) =>
  ({ metadata }: LogEvent): boolean =>
    metadata['idempotencyKey'] === key;
const eventsUnder = async (key: string) => (await readLog(eventStore.url, 'channel-')).filter(isUnder(key));

let names = 0;

/** With a key, so that the next command finds the newest commands in the gateway's memory. */
async function sendOk(path: string, body: object): Promise<Record<string, unknown>> {
  const reply = await one.api.post(path, body, { headers: { 'idempotency-key': `fixture-${++names}` } });
  expect(reply.status).toBe(200);
  return asRecord(reply.json());
}

const createChannel = async () =>
  String((await sendOk('/api/v1/channels', { name: `name ${++names}`, participants: [] }))['id']);

const text = (words: string) => ({ content: [{ type: 'text', text: words }] });
const user = { type: 'non_authenticated_user', user_metadata: {} };

describe('a command that was written while its answer cannot be read', () => {
  it.each([
    { command: 'reaction', method: 'PUT', path: '/reactions/%F0%9F%91%8D', type: 'ReactionAdded.v1' },
    { command: 'receipt', method: 'POST', path: '/read_receipts', type: 'ReadReceiptRecorded.v1' },
  ])('is answered 503 for a $command, which leaves the outcome open', async ({ method, path, type }) => {
    const channelId = await createChannel();
    const isInLog = async () => (await eventsOf(channelId)).some((event) => event.type === type);
    // A slow machine may answer before Redis is frozen, with the state that it read or that nothing was written.
    for (let attempt = 1; ; attempt++) {
      // Leaves the channel in the gateway's memory, which a failed command does not: it cannot be read meanwhile.
      const post = { ...text('first'), participant: user };
      const posted = await sendOk(`/api/v1/channels/${channelId}/interactions`, post);
      const before = lookUpsIn(channelId);
      const body = { agent_id: `agent-${attempt}` };
      await eventStore.pause();
      let answer: Reply | undefined;
      const answered = one.api.request(method, `/api/v1/interactions/${String(posted['id'])}${path}`, { body });
      void answered.then((reply) => (answer = reply));
      await eventually(() => answer !== undefined || lookUpsIn(channelId) > before);
      await redis.pause();
      await eventStore.resume();
      const reply = await answered;
      await redis.resume();
      if (!(await isInLog()) || reply.status === 200) {
        if (attempt === 5) throw new Error(`it was not written before it was answered: ${reply.status} ${reply.text}`);
        continue;
      }
      expect(reply).toMatchObject({ status: 503 });
      expect(asRecord(reply.json())['code']).toBe('outcome_unknown');
      return;
    }
  });
});

/** A request that is under way when the gateway dies. */
interface Doomed {
  readonly channelId: string;
  /** Idempotency key; '' for a request without one. */
  readonly key: string;
  /** Look-ups of the decision, before the append. */
  readonly lookUps: number;
  send(api: ApiClient): Promise<Reply>;
  isIn(log: readonly LogEvent[]): boolean;
}

const participant = { type: 'external_agent', agent_metadata: { tag: 'once' } };
const rename = {
  command: 'rename',
  method: 'PATCH',
  path: (id: string) => `/api/v1/channels/${id}`,
  body: { name: 'once' },
};
const overtaken = { ...rename, command: 'overtaken rename' };
const ON_CHANNEL = [
  { command: 'create', method: 'POST', path: () => '/api/v1/channels', body: { name: 'once', participants: [] } },
  rename,
  { command: 'add', method: 'POST', path: (id: string) => `/api/v1/channels/${id}/participants`, body: participant },
  { command: 'archive', method: 'POST', path: (id: string) => `/api/v1/channels/${id}/archive`, body: undefined },
];

const ON_INTERACTION = [
  { command: 'post', type: 'InteractionPosted.v1', path: null, body: text('once') },
  // Below an existing interaction, so that the parent has to be looked up.
  { command: 'start', type: 'InteractionPosted.v1', path: null, body: { ...text('once'), complete: false } },
  { command: 'append', type: 'InteractionContentAppended.v1', path: '/content', body: text('once') },
  { command: 'complete', type: 'InteractionCompleted.v2', path: '/complete', body: text('once, in place of all') },
  { command: 'fail', type: 'InteractionFailed.v1', path: '/fail', body: { reason: 'once' } },
  { command: 'receipt', type: 'ReadReceiptRecorded.v1', path: '/read_receipts', body: { agent_id: 'agent-1' } },
];

const REACTIONS = [
  { command: 'reaction', type: 'ReactionAdded.v1', count: 2 },
  { command: 'withdrawal', type: 'ReactionRemoved.v1', count: 1 },
];

describe('a command, when the gateway dies before it answers', () => {
  /** By command. */
  const doomed = new Map<string, Doomed>();
  const doomedOf = (command: string): Doomed => {
    const found = doomed.get(command);
    if (found === undefined) throw new Error(`no request: ${command}`);
    return found;
  };

  beforeAll(async () => {
    // On a slow machine a request may be answered, 503, before the gateway is killed; then all are made anew.
    for (let attempt = 1; ; attempt++) {
      if (!one.alive()) await one.start();
      await one.ready();
      for (const form of [...ON_CHANNEL, overtaken]) doomed.set(form.command, await onChannel(form));
      for (const form of ON_INTERACTION) doomed.set(form.command, await onInteraction(form));
      for (const form of REACTIONS) doomed.set(form.command, await ofReaction(form));
      const answers = await dieBeforeAnswering();
      if (answers.length === 0) return;
      if (attempt === 5)
        throw new Error(`the gateway could not be killed between append and answer: ${answers.join('\n')}`);
    }
  });

  /**
   * Sends all requests to the first gateway, and kills it when their events are in the log and no answer can go out: while
   * the event store is frozen, the requests do everything before the append, and Redis is frozen before the appends get
   * through.
   *
   * @returns the answers that went out all the same
   */
  async function dieBeforeAnswering(): Promise<readonly string[]> {
    const requests = [...doomed.values()];
    const keyed = requests.filter(({ key }) => key !== '');
    const answers: string[] = [];
    taken.clear();
    lookUps = [];
    await eventStore.pause();
    const sent = requests.map(({ send }) =>
      send(one.api).then(
        (reply) => void answers.push(`${reply.status} ${reply.text}`),
        () => undefined,
      ),
    );
    const areAppending = (): boolean =>
      taken.size === keyed.length && requests.every((request) => lookUpsIn(request.channelId) >= request.lookUps);
    await eventually(() => answers.length > 0 || areAppending());
    await redis.pause();
    await eventStore.resume();
    await eventually(async () => {
      if (answers.length > 0) return true;
      const log = await readLog(eventStore.url, 'channel-');
      return requests.every((request) => request.isIn(log));
    });
    if (answers.length === 0) await one.kill9();
    await redis.resume();
    await Promise.all(sent);
    return answers;
  }

  type Keyed = Pick<Doomed, 'channelId' | 'lookUps'> & { method: string; url: string; body: unknown };

  function keyed({ channelId, lookUps: count, method, url, body }: Keyed): Doomed {
    const key = `died-${++names}`;
    return {
      channelId,
      key,
      lookUps: count,
      send: (api) => api.request(method, url, { body, headers: { 'idempotency-key': key } }),
      isIn: (log) => log.some(isUnder(key)),
    };
  }

  async function onChannel({ method, path, body }: (typeof ON_CHANNEL)[number]): Promise<Doomed> {
    const channelId = await createChannel();
    return keyed({ channelId, lookUps: 0, method, url: path(channelId), body });
  }

  async function startInteraction() {
    const channelId = await createChannel();
    const interactions = `/api/v1/channels/${channelId}/interactions`;
    const target = await sendOk(interactions, { ...text('first'), participant: user, complete: false });
    return { channelId, interactions, target };
  }

  async function onInteraction({ command, path, body }: (typeof ON_INTERACTION)[number]): Promise<Doomed> {
    const { channelId, interactions, target } = await startInteraction();
    const parent = command === 'start' ? { parent_span_id: target['span_id'] } : {};
    const url = path === null ? interactions : `/api/v1/interactions/${String(target['id'])}${path}`;
    // The span of a post is looked up in the call that takes the idempotency key.
    const count = command === 'post' ? 0 : 1;
    return keyed({ channelId, lookUps: count, method: 'POST', url, body: { ...body, ...parent } });
  }

  async function ofReaction({ command, type }: (typeof REACTIONS)[number]): Promise<Doomed> {
    const { channelId, target } = await startInteraction();
    const url = `/api/v1/interactions/${String(target['id'])}/reactions/${encodeURIComponent('👍')}`;
    const react = (api: ApiClient, agent: string) => api.request('PUT', url, { body: { agent_id: agent } });
    const reacting = command === 'reaction' ? ['agent-1'] : ['agent-1', 'agent-2'];
    for (const agent of reacting) expect((await react(one.api, agent)).status).toBe(200);
    // The first reaction of the other agent is an event of the same type.
    const written = command === 'reaction' ? 2 : 1;
    return {
      channelId,
      key: '',
      lookUps: 1,
      send: (api) =>
        command === 'reaction' ? react(api, 'agent-2') : api.request('DELETE', `${url}?agent_id=agent-2`),
      isIn: (log) =>
        log.filter((event) => event.stream === `channel-${channelId}` && event.type === type).length === written,
    };
  }

  /**
   * @param mayBeStored the answer is sent to Redis together with the event: Redis may have got both before the gateway died
   * @returns the answer of the other gateway, once it may run the command
   */
  async function retryElsewhere(send: Doomed['send'], { mayBeStored = false } = {}): Promise<Reply> {
    let retried = await send(other.api);
    // Unless the lease has expired meanwhile.
    if (retried.status === 409) {
      await endLeases();
      retried = await send(other.api);
    }
    expect(retried.status).toBe(200);
    expect(mayBeStored ? undefined : retried.headers['idempotency-replayed']).toBeUndefined();

    const replayed = await send(other.api);
    expect(replayed).toMatchObject({ status: 200, text: retried.text });
    const { etag, 'parley-position': position } = retried.headers;
    expect(replayed.headers).toMatchObject({ 'idempotency-replayed': 'true', 'parley-position': position });
    expect(replayed.headers.etag).toBe(etag);
    return retried;
  }

  it.each(ON_CHANNEL)(
    'leaves one event of a $command on a channel, and the retry at another gateway gets the same answer',
    async ({ command }) => {
      const { key, send } = doomedOf(command);
      const retried = await retryElsewhere(send);

      // Channels in their first states: the written state is the one that would have been answered.
      const [event, ...more] = await eventsUnder(key);
      expect(more).toEqual([]);
      const { channelId, revision, body: channel } = answerOf(retried);
      expect(event).toMatchObject({ stream: `channel-${channelId}`, revision });
      expect(channel['modified']).toBe(event?.metadata['at']);
      const read = await other.api.get(`/api/v1/channels/${channelId}`);
      expect(read.text).toBe(retried.text);
    },
  );

  it('does not undo later writes of others', async () => {
    const { channelId, send } = doomedOf(overtaken.command);
    expect((await other.api.patch(`/api/v1/channels/${channelId}`, { name: 'later' })).status).toBe(200);
    await endLeases();
    expect((await send(other.api)).json()).toMatchObject({ name: 'later' });
    expect((await eventsOf(channelId)).map(({ data }) => data['name'])).toEqual([expect.any(String), 'once', 'later']);
  });

  it.each(ON_INTERACTION)(
    'leaves one event of a $command on an interaction, and the retry at another gateway gets the same answer',
    async ({ command, type, path }) => {
      const { channelId, key, send } = doomedOf(command);
      const retried = await retryElsewhere(send, { mayBeStored: path === null });

      const [event, ...more] = await eventsUnder(key);
      expect(more).toEqual([]);
      expect(event).toMatchObject({ type, stream: `channel-${channelId}`, revision: 2 });
      const events = await eventsOf(channelId);
      expect(events).toHaveLength(3);

      const { id, ...answered } = asRecord(retried.json());
      const read = await other.api.get(`/api/v1/interactions/${String(id)}?include_incomplete=true`);
      expect(read.text).toBe(retried.text);
      const folded = foldInteractions(channelId, events).get(Number(answered['sequence']));
      const receipt = { agent_id: 'agent-1', read_at: event?.metadata['at'] };
      const receipts = command === 'receipt' ? [receipt] : null;
      expect(answered).toMatchObject({ ...folded, agent_read_receipts: receipts });
    },
  );

  it.each(REACTIONS)(
    'leaves one event of a $command, which is repeatable without a key',
    async ({ command, type, count }) => {
      const { channelId, send } = doomedOf(command);
      const retried = await send(other.api);
      expect(retried.status).toBe(200);
      expect(retried.json()).toMatchObject({ reactions: [{ emoji: '👍', count }] });
      expect((await send(other.api)).text).toBe(retried.text);
      const events = await eventsOf(channelId);
      expect(events.filter((event) => event.type === type)).toHaveLength(command === 'reaction' ? 2 : 1);
      expect(events.at(-1)?.type).toBe(type);
    },
  );
});
