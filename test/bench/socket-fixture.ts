/** A running Parley with a channel that sockets subscribe to, and the servers that it is compared with. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { channelTopic } from '#libs/platform/live/index.ts';
import { startTestRedis } from '#test/support/redis.ts';

import { type ChannelFixture, prepareChannels } from './channel-fixture.ts';
import { startChild } from './child-process.ts';
import { compile } from './load/c-program.ts';
import type { SocketRequest, Trigger } from './load/sockets.ts';
import type { FrameServerAnswer } from './sides/frame-server.ts';

/** A server for the sockets of a run. */
export interface SocketServer {
  readonly pid: number;
  readonly port: number;
  readonly trigger: Trigger;
  /** Headers of each socket's handshake. */
  requests(count: number): Promise<readonly SocketRequest[]>;
  /** Count of frames that a socket has received when it is subscribed. */
  readonly framesFirst: number;
  /** See `SocketsOptions`. */
  readonly messageBytes?: number;
  stop(): Promise<void>;
}

export interface SocketFixture {
  /** The text of the event's frame: every side sends the same. */
  readonly frame: string;
  readonly channel: ChannelFixture;
  readonly path: string;
  /**
   * The whole product.
   * @param flags further flags of Node
   */
  parley(flags?: readonly string[]): Promise<SocketServer>;
  /** `sides/<name>.process.ts` */
  bare(name: 'ws-server' | 'socket-io-server', flags?: readonly string[]): Promise<SocketServer>;
  /** The C program. */
  writer(): Promise<SocketServer>;
  cleanUp(): Promise<void>;
}

/** @param env of Parley, beside the stores */
export async function prepareSockets(env: Readonly<Record<string, string>> = {}): Promise<SocketFixture> {
  const redis = await startTestRedis();
  const channel = await prepareChannels(1, { env: { ...env, REDIS_URL: redis.url } });
  const path = `${channel.paths[0]}/websocket`;
  const { template, frame, channelId } = frameOf(channel);
  return {
    frame,
    channel,
    path,
    async parley(flags) {
      const parley = await channel.start(flags);
      const port = Number(parley.url.port);
      const { organizationId } = await serviceKey(parley.url, channel.headers);
      return {
        pid: parley.pid,
        port,
        // After the channel's creation.
        trigger: {
          redisUrl: redis.url,
          topic: channelTopic(organizationId, channelId),
          template: `E @SEQ@ 0 ${template}`,
          sequence: 2,
        },
        requests: async (count) =>
          (await tickets(parley.url, channel, count)).map((ticket) => ({
            path,
            protocols: ['parley.v1', `ticket.${ticket}`],
            greeting: '{"frame":"resume"}',
          })),
        framesFirst: 2,
        stop: () => parley.stop(),
      };
    },
    bare: (name, flags = []) => bareServer(name, frame, flags),
    writer: () => writerServer(frame),
    async cleanUp() {
      await channel.cleanUp();
      await redis.stop();
    },
  };
}

/** Like the events of posted interactions: with a document of the usual size as data. */
function frameOf({ body, paths }: ChannelFixture): { template: string; frame: string; channelId: string } {
  const { id } = JSON.parse(body) as { id: string };
  const at = '2026-01-01T00:00:00.000Z';
  const template = `{"frame":"event","seq":@SEQ@,"type":"channel.updated","at":"${at}","data":${body}}`;
  if (paths[0]?.endsWith(id) !== true) throw new Error('the body is not of the first channel');
  return {
    template,
    frame: template.replace('@SEQ@', '100002'),
    channelId: id,
  };
}

async function bareServer(name: string, frame: string, flags: readonly string[]): Promise<SocketServer> {
  const child = startChild(`sides/${name}.process.ts`, { execArgv: flags });
  const { port, triggerPort } = await child.ask<FrameServerAnswer>({ frame });
  const request: SocketRequest =
    name === 'socket-io-server' ? { path: '/socket.io/?EIO=4&transport=websocket', greeting: '40' } : { path: '/' };
  return {
    pid: child.pid,
    port,
    trigger: { port: triggerPort },
    requests: async (count) => Array.from({ length: count }, () => request),
    framesFirst: name === 'socket-io-server' ? 2 : 1,
    stop: () => child.stop(),
  };
}

async function writerServer(frame: string): Promise<SocketServer> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-bench-writer-'));
  const file = join(folder, 'frame');
  await writeFile(file, websocketFrame(frame));
  const child = spawn(await compile('sides/fan-out-writer.c'), [file], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [ports] = await once(child.stdout, 'data');
  const [port = 0, triggerPort = 0] = String(ports).split(' ').map(Number);
  return {
    pid: child.pid ?? 0,
    port,
    trigger: { port: triggerPort },
    requests: async (count) => Array.from({ length: count }, () => ({ path: '/' })),
    framesFirst: 1,
    async stop() {
      child.kill('SIGKILL');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** An unmasked text frame of medium length. */
function websocketFrame(text: string): Buffer {
  const payload = Buffer.from(text);
  const header = Buffer.from([0x81, 126, payload.length >> 8, payload.length & 0xff]);
  if (payload.length < 126 || payload.length > 0xffff) throw new RangeError('not a frame of medium length');
  return Buffer.concat([header, payload]);
}

const AT_A_TIME = 32;

/** They are valid for a minute. */
export async function tickets(
  url: URL,
  { paths, headers }: Pick<ChannelFixture, 'paths' | 'headers'>,
  count: number,
): Promise<string[]> {
  const values: string[] = [];
  // A service: users may subscribe only to channels that they take part in.
  const authorization = `Bearer ${(await serviceKey(url, headers)).key}`;
  async function issue(): Promise<void> {
    for (let asked = values.push(''); asked <= count; asked = values.push('')) {
      const response = await fetch(new URL(`${paths[0]}/websocket_ticket`, url), {
        method: 'POST',
        headers: { authorization },
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`no ticket: ${response.status} ${text}`);
      values[asked - 1] = (JSON.parse(text) as { value: string }).value;
    }
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, issue));
  return values.slice(0, count);
}

async function serviceKey(
  url: URL,
  headers: Readonly<Record<string, string>>,
): Promise<{ readonly key: string; readonly organizationId: string }> {
  const body = JSON.stringify({ name: 'tickets', scopes: ['read'], principal: { type: 'service', id: 'benchmark' } });
  const response = await fetch(new URL('/api/v1/keys', url), { method: 'POST', headers, body });
  const text = await response.text();
  if (!response.ok) throw new Error(`no key: ${response.status} ${text}`);
  const { key, organization_id: organizationId } = JSON.parse(text) as { key: string; organization_id: string };
  return { key, organizationId };
}
