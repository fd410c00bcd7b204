/* Timeouts of sockets, with a clock that runs ten times as fast, as do all times that are counted in ticks. */
import { once } from 'node:events';

import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';

import { PING, PONG, RealtimeNode, SubscriberAccess, WebsocketAdmission } from '#libs/features/realtime/index.ts';
import { storeUnavailable } from '#libs/kernel/faults.ts';
import { newId } from '#libs/kernel/ids.ts';
import { buildHttpServer, type HttpServer } from '#libs/platform/http/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { Upgrades } from '#libs/platform/websocket/index.ts';
import { composeFeatures, type Features } from '#services/features.ts';
import { eventually } from '#test/support/eventually.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import { contextOf, newChannel } from '#test/support/realtime/channel-life.ts';
import { type ChannelGrant, LiveNode } from '#libs/platform/live/index.ts';

const TICK_MS = 100;

let test: TestPlatform;
let features: Features;
let node: RealtimeNode;
let server: HttpServer;
let baseUrl: string;
/** Keys that are revoked, the expiry of others, and the errors of reads. */
const revoked = new Set<string>();
const ends = new Map<string, number>();
const failures = new Map<string, Error>();
/** Reads of the participants of a channel wait for it. */
let fold: Promise<void> = Promise.resolve();
/** Users that the node has read as participants. */
const takingPart = new Set<string>();

beforeAll(async () => {
  test = await startTestPlatform();
  features = composeFeatures(test.platform);
  const metrics = createMetrics({ processMetrics: false });
  const { tickets } = features.realtime;
  const access = new SubscriberAccess({
    keys: {
      principal: () => null,
      async verify(keyId) {
        const failure = failures.get(keyId);
        if (failure !== undefined) throw failure;
        if (revoked.has(keyId)) return null;
        const ids = { organizationId: 'o', principalType: 'service', principalId: 's', keyId } as const;
        return {
          principal: { ...ids, scopes: new Set(), isMember: false, expiresAtMs: ends.get(keyId) ?? null },
          ageMs: 0,
        };
      },
    },
    announcements: { listen: () => () => undefined, receive: () => () => undefined },
    members: { admission: async () => null },
    channels: {
      async usersOf(organizationId, channelId) {
        await fold;
        return features.channels.usersOf(organizationId, channelId);
      },
    },
    log: test.platform.log,
  });
  node = new RealtimeNode(
    new LiveNode({ ...test.platform, metrics }, { heads: async (streams) => streams.map(() => 0) }, TICK_MS),
    {
      ...features.realtime,
      access: {
        admit: (grant) => grant,
        check: (grant) => access.check(grant),
        async usersOf(organizationId, channelId) {
          const users = await access.usersOf(organizationId, channelId);
          for (const user of users ?? []) takingPart.add(user);
          return users;
        },
        onChange: (handler) => access.onChange(handler),
      },
    },
  );
  const upgrades = new Upgrades();
  upgrades.handle(new WebsocketAdmission(node, { tickets, origins: [], isOwnOrigin: () => false }));
  server = await buildHttpServer({
    routes: () => undefined,
    authenticator: { authenticate: () => null },
    tokenSecret: test.platform.tokenSecret,
    metrics,
    upgrades,
    info: { title: 'Sockets', version: '1' },
  });
  baseUrl = (await server.listen({ host: '127.0.0.1', port: 0 })).replace('http', 'ws');
});
afterAll(async () => {
  await node.stop();
  await server.close();
  await test.stop();
});

interface Client {
  readonly socket: WebSocket;
  readonly frames: string[];
  readonly grant: ChannelGrant;
  /** The close code. */
  readonly closed: Promise<number>;
}

/** @param reply the answer to each ping; default: none */
async function open(principal: Partial<ChannelGrant> = {}, reply?: string): Promise<Client> {
  const place = await newChannel(features);
  const keyId = newId();
  const grant: ChannelGrant = {
    ...place,
    principalType: 'service',
    principalId: 's',
    keyId,
    scopes: ['read'],
    isMember: false,
    takesPart: false,
    expiresAtMs: null,
    ...principal,
  };
  const { value } = await features.realtime.tickets.issue(grant);
  const socket = new WebSocket(`${baseUrl}/api/v1/channels/${place.channelId}/websocket?ticket=${value}`);
  const frames: string[] = [];
  socket.on('message', (data: Buffer) => {
    frames.push(String(Reflect.get(JSON.parse(data.toString()), 'frame')));
    if (frames.at(-1) === 'ping' && reply !== undefined) socket.send(reply);
  });
  const closed = once(socket, 'close').then(([code]) => Number(code));
  await once(socket, 'message');
  return { socket, frames, grant, closed };
}

async function follow(principal: Partial<ChannelGrant> = {}, reply?: string): Promise<Client> {
  const client = await open(principal, reply);
  client.socket.send('{"frame":"resume"}');
  await eventually(() => client.frames.includes('caught_up'));
  return client;
}

/** Since it follows the channel: the resume may have answered an earlier ping. */
const pings = ({ frames }: Client): number =>
  frames.slice(frames.indexOf('caught_up')).filter((frame) => frame === 'ping').length;

it('a socket that answers no ping is closed with 4013; one that answers with any frame stays open', async () => {
  const [polite, busy, silent] = [await follow({}, PONG), await follow({}, PING), await follow()];
  expect(await silent.closed).toBe(4013);
  expect(pings(silent)).toBe(1);
  await eventually(() => pings(polite) >= 3 && pings(busy) >= 3);
  for (const { socket } of [polite, busy]) {
    expect(socket.readyState).toBe(WebSocket.OPEN);
    socket.close();
  }
}, 30_000);

it('a socket that does not resume is closed with 4500, whenever its ping is due', async () => {
  // Pings are due at one of 25 ticks.
  const clients = await Promise.all(Array.from({ length: 100 }, () => open()));
  const codes = await Promise.all(clients.map(({ closed }) => closed));
  expect(codes.filter((code) => code !== 4500)).toEqual([]);
  expect(clients.filter(({ frames }) => frames.includes('ping'))).toEqual([]);
});

it('a socket whose key has ended without an announcement is closed with 4503 at the next check', async () => {
  const [lost, kept] = [await follow({}, PONG), await follow({}, PONG)];
  revoked.add(lost.grant.keyId);
  expect(await lost.closed).toBe(4503);
  expect(kept.socket.readyState).toBe(WebSocket.OPEN);
  kept.socket.close();
  // And one whose key has ended between the ticket and the connection.
  const late = await follow();
  revoked.add(late.grant.keyId);
  expect(await late.closed).toBe(4503);
});

it('a socket is closed with 4503 when its key expires, also after a rotation', async () => {
  const soon = Date.now() + 500;
  const [expiring, rotated] = [await follow({ expiresAtMs: soon }, PONG), await follow({}, PONG)];
  ends.set(expiring.grant.keyId, soon);
  ends.set(rotated.grant.keyId, Date.now() + 500);
  expect(await Promise.all([expiring.closed, rotated.closed])).toEqual([4503, 4503]);
});

it('a socket whose key has ended is closed while the participants of its channel are still read', async () => {
  const folded = Promise.withResolvers<void>();
  const user = await follow({ principalType: 'user', principalId: newId() }, PONG);
  fold = folded.promise;
  revoked.add(user.grant.keyId);
  expect(await user.closed).toBe(4503);
  folded.resolve();
});

it('a socket whose key has ended is closed although the key of another one cannot be read', async () => {
  const [lost, damaged] = [await follow({}, PONG), await follow({}, PONG)];
  failures.set(damaged.grant.keyId, new TypeError('an event of the key is corrupt'));
  revoked.add(lost.grant.keyId);
  expect(await lost.closed).toBe(4503);
  expect(await damaged.closed).toBe(4014);
});

it('a socket whose key cannot be verified is closed with 4014, after which it may reconnect', async () => {
  const doubtful = await follow({}, PONG);
  failures.set(doubtful.grant.keyId, storeUnavailable('the event store'));
  expect(await doubtful.closed).toBe(4014);
});

it('a socket of a user who joined after it was opened is closed with 4010 when the user is removed', async () => {
  const commands = features.channels;
  const [userId, participantId] = [newId(), newId()];
  const member = await follow({ principalType: 'user', principalId: userId });
  const { organizationId, channelId } = member.grant;
  const user = { type: 'authenticated_user', participantId, userId, displayName: 'Ada', imageUrl: null } as const;
  await commands.addParticipant(contextOf(organizationId, newId(), 1), channelId, { ...user, isOwner: false });
  await eventually(() => takingPart.has(userId));
  await commands.removeParticipant(contextOf(organizationId, newId(), 2), channelId, participantId);
  expect(await member.closed).toBe(4010);
});

it('a node that stops closes all with 1012, disconnects clients that do not read, and refuses new ones', async () => {
  const [polite, deaf] = [await follow(), await follow()];
  deaf.socket.pause();
  const stopped = node.stop();
  expect(await polite.closed).toBe(1012);
  const refused = new WebSocket(`${baseUrl}/api/v1/channels/${polite.grant.channelId}/websocket?ticket=x`);
  const [error] = await once(refused, 'error');
  expect(String(error)).toContain('503');
  await stopped;
  deaf.socket.resume();
  await deaf.closed;
});
