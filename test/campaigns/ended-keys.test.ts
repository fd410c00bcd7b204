/*
 * Keys are revoked, expire, are rotated, and their users are deactivated, while stores and processes fail whose
 * failure could let them in again: two gateways with sockets, a projector, and a Redis that each gateway can lose
 * alone. ENDED_KEYS_ROUNDS sets the length, ENDED_KEYS_SEED the choices; with ENDED_KEYS_EVENTS in the log a fold
 * takes longer, so that read models lag for longer.
 */
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import type { ApiClient } from '#test/support/api-client.ts';
import { randomFrom } from '#test/support/channel-history.ts';
import { acceptedTooLate, graceOf, type EndedKey, type KeyUse } from '#test/support/ended-keys.ts';
import { KeyStage, type Gateway } from '#test/support/ended-keys-stage.ts';
import { eventually } from '#test/support/eventually.ts';
import { asRecord } from '#test/support/log-reader.ts';
import { newChannel } from '#test/support/realtime/nodes.ts';
import { newTicket, openSocket } from '#test/support/realtime/subscriber.ts';

const ROUNDS = Number(process.env['ENDED_KEYS_ROUNDS'] ?? 8);
const SEED = Number(process.env['ENDED_KEYS_SEED'] ?? 1);
/** Only ends a hang: a round on a busy machine, with a log that is folded again, takes half a minute. */
const TIMEOUT_MS = 120_000 + ROUNDS * 60_000;
const EVENTS = Number(process.env['ENDED_KEYS_EVENTS'] ?? 0);
/** How long each key is used after its end, before the next round; longer than announced ends may go unnoticed. */
const USE_FOR_MS = 2_000;

const ENDS = ['revoke', 'deactivate', 'expire', 'rotate'] as const;
type End = (typeof ENDS)[number];

/** Shifted by one after each pass through the failures, so that each end meets each failure. */
const endOf = (number: number): End => ENDS[(number + Math.floor(number / 8)) % ENDS.length] ?? 'revoke';

let stage: KeyStage;
let channelId: string;
/** One key for each round: created before the rest of the log, and ended after it. */
const keys: Key[] = [];
const ended: { readonly key: EndedKey; readonly subject: Subject }[] = [];
const uses: KeyUse[] = [];
/** Sockets of keys that had not ended. */
const refusedWhileWorking: string[] = [];
const socketsClosed: Promise<unknown>[] = [];
const random = randomFrom(SEED);

interface Key {
  readonly id: string;
  readonly secret: string;
  readonly userId: string;
  readonly expiresAt: number | null;
}

/** A key in use: its clients and open sockets at both gateways, and an unused ticket for each. */
interface Subject extends Key {
  readonly places: { gateway: Gateway; api: ApiClient; socket: WebSocket; ticket: string }[];
}

async function created(path: string, body: object): Promise<Record<string, unknown>> {
  return eventually(async () => {
    const reply = await stage.gateways[0].process.api.post(path, body);
    if (reply.status !== 200) throw new Error(`${path}: ${reply.status} ${reply.text}`);
    return asRecord(reply.json());
  });
}

async function newKey(how: End, lifeMs = 0): Promise<Key> {
  const userId = String((await created('/api/v1/users', { display_name: 'Ada' }))['id']);
  const expiresAt = how === 'expire' ? Date.now() + lifeMs : null;
  const key = await created('/api/v1/keys', {
    name: how,
    scopes: ['read', 'write'],
    principal: { type: 'user', id: userId },
    access: 'organization',
    ...(expiresAt !== null && { expires_at: new Date(expiresAt).toISOString() }),
  });
  return { id: String(key['id']), secret: String(key['key']), userId, expiresAt };
}

async function newSubject(number: number, lifeMs = 4_000): Promise<Subject> {
  const how = endOf(number);
  // It would expire before its round.
  const key = how === 'expire' ? await newKey(how, lifeMs) : keys[number];
  if (key === undefined) throw new TypeError('no key for this round');
  const places = stage.gateways.map(async (gateway) => {
    const api = gateway.process.api.withKey(key.secret);
    const socket = await eventually(() => opened(gateway, api, key));
    socket.on('error', () => undefined);
    socket.send('{"frame":"resume"}');
    return { gateway, api, socket, ticket: await newTicket(api, channelId) };
  });
  try {
    return { ...key, places: await Promise.all(places) };
  } catch (error) {
    // On a busy machine it has expired before everything was open.
    if (key.expiresAt !== null && key.expiresAt <= Date.now()) return newSubject(number, 3 * lifeMs);
    throw error;
  }
}

/** A socket of a valid key, after its hello. */
async function opened({ name, process }: Gateway, api: ApiClient, { expiresAt }: Key): Promise<WebSocket> {
  const socket = openSocket(process.baseUrl, channelId, await newTicket(api, channelId));
  const closed = once(socket, 'close').then(([code]) => Number(code));
  const code = await Promise.race([once(socket, 'message').then(() => null), closed]);
  if (code === null) return socket;
  // On a busy machine a key may expire here: its round begins again.
  if (expiresAt === null || Date.now() < expiresAt) refusedWhileWorking.push(`${name} closed a socket with ${code}`);
  throw new Error('closed before its hello');
}

/** Ends a key at a gateway, and resolves when that is acknowledged. */
async function end(how: End, { id, userId, expiresAt }: Subject, { process: { api } }: Gateway): Promise<number> {
  if (expiresAt !== null) {
    await delay(Math.max(0, expiresAt - Date.now()));
    return performance.now();
  }
  await eventually(async () => {
    if (how === 'revoke') expect((await api.post(`/api/v1/keys/${id}/revoke`)).status).toBe(200);
    if (how === 'deactivate') expect((await api.delete(`/api/v1/users/${userId}`)).status).toBe(200);
    if (how === 'rotate') expect((await api.post(`/api/v1/keys/${id}/rotate`, { grace_seconds: 1 })).status).toBe(200);
  });
  return performance.now() + (how === 'rotate' ? 1_000 : 0);
}

async function use(key: EndedKey, gateway: Gateway, what: string, send: () => Promise<boolean>): Promise<void> {
  const { startedAtMs } = gateway;
  const sentAtMs = performance.now();
  // 401, 503 and a broken connection all grant no access.
  const accepted = await send().catch(() => false);
  uses.push({ key, what: `${what} at ${gateway.name}`, sentAtMs, startedAtMs, accepted });
}

function useOverHttp(key: EndedKey, { places }: Subject): Promise<unknown> {
  const text = { content: [{ type: 'text', text: 'x' }] };
  return Promise.all(
    places.flatMap(({ gateway, api }) => [
      use(key, gateway, 'GET', async () => (await api.get('/api/v1/channels?size=1')).status === 200),
      use(key, gateway, 'POST', async () => {
        return (await api.post(`/api/v1/channels/${channelId}/interactions`, text)).status === 200;
      }),
    ]),
  );
}

/** A command over the socket that was open before the end, and a ticket from before it. */
function useSockets(key: EndedKey, { places }: Subject): Promise<unknown> {
  return Promise.all(
    places.flatMap(({ gateway, socket, ticket }) => [
      use(key, gateway, 'a command', async () => {
        if (socket.readyState !== socket.OPEN) return false;
        const answer = replyTo(socket, 'late');
        socket.send('{"frame":"command","id":"late","type":"typing","data":{"typing":true}}');
        return (await answer) === 'ack';
      }),
      use(key, gateway, 'a ticket', async () => {
        const late = openSocket(gateway.process.baseUrl, channelId, ticket);
        late.on('error', () => undefined);
        const hello = await Promise.race([once(late, 'message'), once(late, 'close').then(() => null)]);
        late.terminate();
        return hello !== null;
      }),
    ]),
  );
}

function replyTo(socket: WebSocket, id: string): Promise<unknown> {
  const answer = new Promise((resolve) => {
    socket.on('message', (data: Buffer) => {
      const frame = asRecord(JSON.parse(data.toString()));
      if (frame['id'] === id) resolve(frame['frame']);
    });
  });
  return Promise.race([answer, once(socket, 'close').then(() => 'closed')]);
}

const PROBE = 'posted at ';

/** Posts to the channel, so that sockets which are still open after the end of their key receive something. */
async function postProbes(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    for (const { process } of stage.gateways) {
      const text = `${PROBE}${performance.now()}`;
      await process.api
        .post(`/api/v1/channels/${channelId}/interactions`, { content: [{ type: 'text', text }] })
        .catch(() => undefined);
    }
    await delay(300);
  }
}

function watchSocket(key: EndedKey, gateway: Gateway, socket: WebSocket): void {
  socketsClosed.push(socket.readyState === socket.CLOSED ? Promise.resolve() : once(socket, 'close'));
  const { startedAtMs } = gateway;
  socket.on('message', (data: Buffer) => {
    const posted = new RegExp(`${PROBE}([0-9.]+)`).exec(data.toString())?.[1];
    if (posted === undefined) return;
    const what = `an event by a socket at ${gateway.name}`;
    uses.push({ key, what, sentAtMs: Number(posted), startedAtMs, accepted: true, isDelivery: true });
  });
}

async function round(number: number): Promise<void> {
  const { gateways, failures, projector, running } = stage;
  const failure = failures[number % failures.length] ?? failures[0];
  const how = endOf(number);
  const [at, other] = random(2) === 0 ? gateways : gateways.toReversed();
  if (at === undefined || other === undefined) throw new TypeError('two gateways');
  const subject = await newSubject(number);
  await failure.before?.(at, other);
  const key: EndedKey = {
    name: `round ${number}: ${how} at ${at.name} (${failure.name})`,
    endedAtMs: await end(how, subject, at),
    announced: failure.unannounced !== true,
  };
  for (const { gateway, socket } of subject.places) watchSocket(key, gateway, socket);
  await delay(Math.max(0, key.endedAtMs + 1_001 - performance.now()));
  const using = useUntilRefused(key, subject);
  await useSockets(key, subject);
  ended.push({ key, subject });
  await failure.after?.(at, other);
  for (const one of ended) await useOverHttp(one.key, one.subject);
  projector.resume();
  running.push(using);
}

/** For a while, and for over a minute where the end was not announced. */
async function useUntilRefused(key: EndedKey, subject: Subject): Promise<void> {
  const until = key.endedAtMs + USE_FOR_MS;
  const latest = key.endedAtMs + graceOf(key, 0) + USE_FOR_MS;
  for (let accepted = true; performance.now() < until || (accepted && performance.now() < latest);) {
    const before = uses.length;
    await useOverHttp(key, subject);
    accepted = uses.slice(before).some((one) => one.key === key && one.accepted);
    await delay(100);
  }
}

// A gateway loses Redis by a proxy in front of one server.
describe.skipIf(process.env['PARLEY_TEST_REDIS'] === 'cluster')('a key that has ended', () => {
  beforeAll(async () => {
    stage = await KeyStage.start();
    channelId = await newChannel(stage.gateways[0].process.api);
    for (let number = 0; number < ROUNDS; number++) keys.push(await newKey(endOf(number), 60_000));
    const text = { content: [{ type: 'text', text: 'x' }] };
    for (let left = EVENTS; left > 0; left -= 50) {
      await Promise.all(Array.from({ length: 50 }, () => created(`/api/v1/channels/${channelId}/interactions`, text)));
    }
  }, 300_000);

  afterAll(() => stage?.stop(), 60_000);

  it(
    'has access nowhere, whatever fails: at no gateway and over no socket',
    async () => {
      const done = new AbortController();
      stage.running.push(postProbes(done.signal));
      for (let number = 0; number < ROUNDS; number++) {
        await round(number);
        await stage.ready();
      }
      // The periodic check of open sockets, which needs no announcement, runs three times a minute.
      await Promise.all(socketsClosed);
      done.abort();
      await Promise.all(stage.running);
      expect(acceptedTooLate(uses)).toEqual([]);
      expect(refusedWhileWorking).toEqual([]);
      expect(uses.filter(({ accepted }) => !accepted).length).toBeGreaterThan(ROUNDS * 30);
    },
    TIMEOUT_MS,
  );
});
