/** Many subscribers with various options, the frames that they must receive, and faults to plant for the checker. */
import { setTimeout as delay } from 'node:timers/promises';

import type { ApiClient } from '#test/support/api-client.ts';
import { randomFrom } from '#test/support/channel-history.ts';

import { channelLog, framesAgainstLog, framesWithLess, replay } from './expected-frames.ts';
import { problemsOf, type FrameLog, type Received } from './sequence-checker.ts';
import { Subscriber, type Include } from './subscriber.ts';

const EVERYTHING: readonly Include[] = ['nested', 'incomplete', 'ephemeral'];
export const INCLUDES: readonly (readonly Include[])[] = [[], ['nested'], ['incomplete'], EVERYTHING];

export const nameOf = (include: readonly Include[]): string => include.join('+') || 'plain';

export interface SocketsOptions {
  readonly count: number;
  readonly channels: readonly string[];
  readonly nodes: readonly [ApiClient, ...ApiClient[]];
  /** Gateways that issue tickets. Default: the nodes. */
  readonly tickets?: readonly ApiClient[];
}

/** Starts subscribers from the beginning of their channels, from other sequences, or for new events only. */
export function startSockets({ count, channels, nodes, tickets }: SocketsOptions): Subscriber[] {
  const texts = new Map<string, string>();
  return Array.from({ length: count }, (_, n) => {
    const include = INCLUDES[Math.floor(n / channels.length) % INCLUDES.length] ?? [];
    const after = [{ after: 0 }, { after: n % 11 }, {}][Math.floor(n / (channels.length * INCLUDES.length)) % 3];
    const of = {
      name: `socket ${n} (${nameOf(include)})`,
      channelId: channels[n % channels.length] ?? '',
      include,
      nodes,
      texts,
      ...(tickets !== undefined && { tickets }),
    };
    return new Subscriber({ ...of, ...after }, n).start();
  });
}

/** Cuts connections until it is stopped. */
export function cutAtRandom(
  sockets: readonly Subscriber[],
  { seed, everyMs }: { readonly seed: number; readonly everyMs: number },
): { stop(): Promise<void> } {
  const random = randomFrom(seed);
  const end = new AbortController();
  const ended = (async () => {
    while (!end.signal.aborted) {
      for (let count = 0; count < 3; count++) sockets[random(sockets.length)]?.cut();
      await delay(everyMs + random(everyMs));
    }
  })();
  return {
    async stop() {
      end.abort();
      await ended;
    },
  };
}

export interface ExpectedLogs {
  /** By name of the includes: the log of each channel as sockets with them must receive it. */
  readonly logs: ReadonlyMap<string, ReadonlyMap<string, FrameLog>>;
  /** Differences between the event store and a socket that reads everything from the beginning. */
  readonly problems: readonly string[];
}

export async function expectedLogs(
  of: { readonly node: ApiClient; readonly tickets?: ApiClient; readonly eventstoreUrl: string },
  channels: readonly string[],
): Promise<ExpectedLogs> {
  const logs = new Map(INCLUDES.map((include) => [nameOf(include), new Map<string, FrameLog>()]));
  const problems: string[] = [];
  for (const channel of channels) {
    const events = await channelLog(of.eventstoreUrl, channel);
    const tickets = of.tickets ?? of.node;
    const see = (include: readonly Include[]) => replay(of.node, channel, { include, length: events.length, tickets });
    const all = await see(EVERYTHING);
    problems.push(...framesAgainstLog(all, events));
    for (const include of INCLUDES) {
      const frames = include === EVERYTHING ? all : await see(include);
      const lacks = (data: Record<string, unknown>) =>
        (data['parent_span_id'] !== null && !include.includes('nested')) ||
        (data['complete'] === false && !include.includes('incomplete'));
      problems.push(...framesWithLess(frames, all, lacks));
      logs.get(nameOf(include))?.set(channel, frames);
    }
  }
  return { logs, problems };
}

/** The frames that sockets with these includes received, with their first cursors. */
export function receivedBy(
  sockets: readonly Subscriber[],
  include: readonly Include[],
  begun: ReadonlyMap<Subscriber, number | undefined>,
): Received[] {
  return sockets
    .filter((socket) => nameOf(socket.include) === nameOf(include))
    .map((socket) => ({
      name: socket.name,
      channelId: socket.channelId,
      after: begun.get(socket),
      sessions: socket.sessions,
    }));
}

/** The kinds of problems that the checker finds for each planted fault: must include the fault's own name. */
export function plantedFaults(
  received: readonly Received[],
  expected: { readonly logs: ReadonlyMap<string, FrameLog> },
): Record<'gap' | 'double' | 'reorder' | 'altered', readonly (string | undefined)[]> {
  const follows = (frames: readonly string[], n: number): boolean =>
    [frames[n], frames[n + 1]].every((text) => text?.includes('"event"') === true);
  const found = received.findIndex(({ sessions }) =>
    sessions.some(({ frames }) => frames.some((_, n) => follows(frames, n))),
  );
  const socket = received[found];
  if (socket === undefined) throw new TypeError('no socket received two consecutive events');
  const at = socket.sessions.findIndex(({ frames }) => frames.some((_, n) => follows(frames, n)));
  const frames = socket.sessions[at]?.frames ?? [];
  const index = frames.findIndex((_, n) => follows(frames, n));
  const planted = (doctored: readonly string[]) => {
    const sessions = socket.sessions.map((session, n) => (n === at ? { ...session, frames: doctored } : session));
    return problemsOf([{ ...socket, sessions }], expected).map((problem) => problem.split(':')[0]);
  };
  const [one = '', next = ''] = frames.slice(index, index + 2);
  return {
    gap: planted(frames.toSpliced(index, 1)),
    double: planted(frames.toSpliced(index, 0, one)),
    reorder: planted(frames.with(index, next).with(index + 1, one)),
    altered: planted(frames.with(index, one.replace('"seq"', '"seq" '))),
  };
}
