/**
 * Takes the sharp edges off one `EventStoreDBClient` (6.2.1), from outside and without changing its code:
 *
 * 1. Its batch append keeps one table of waiting appends for the whole process. An error of any batch
 *    stream empties that table, and an answer that arrives for an append that is no longer in it (or an
 *    answer without the fields that the client expects) throws inside a `data` listener: an uncaught
 *    exception that would end the process. The listener is wrapped here, and nothing else: the error is
 *    reported, and the append that waited for such an answer ends by its own deadline. Where a process has
 *    several clients, the table is not emptied, for it also holds the appends of the others: whoever waits for
 *    this client is told by `onBroken`.
 * 2. While a batch stream is congested, appends wait in a queue inside of a promise executor; when the
 *    stream breaks, their rejection is unhandled and would end the process, too. So the stream always
 *    says that there is room. The bound on unanswered appends is kept by `EventStoreDbStore` instead.
 * 3. `handleError` is called without anybody looking at its promise, which rejects when the discovery of
 *    a cluster fails meanwhile.
 *
 * These members are `protected` in the client's types but ordinary properties at run time; should a new
 * version move them, the check below fails at start-up, not at the first outage.
 */
import type { EventStoreDBClient } from '@eventstore/db-client';
import { StreamsService } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import { Channel } from '@grpc/grpc-js';
import { Duplex } from 'node:stream';
import { pause } from '#libs/platform/lifecycle/index.ts';
import './native-base64.ts';

/** How long the orderly end of all calls may take. */
const CLOSE_DEADLINE_MS = 1000;

type Creator = (grpcClient: unknown) => unknown;
type StreamCreator = (client: unknown, name: string, create: Creator, cache?: unknown) => unknown;

export interface GuardedClient {
  readonly client: EventStoreDBClient;
  /** Ends all calls and the connection. The client's own `dispose` would leave the connection open. */
  close(): Promise<void>;
}

export interface GuardOptions {
  /** Hears of answers that would have ended the process. */
  onDefect(error: unknown): void;
  /** Whether no other client of this process has appends that wait. */
  isAlone(): boolean;
  /** The stream has broken on which the appends went that wait; the error is as gRPC gives it. */
  onBroken(error: unknown): void;
}

/** Makes `client` safe to use. */
export function guardClient(client: EventStoreDBClient, options: GuardOptions): GuardedClient {
  const createStream: StreamCreator = method(client, 'GRPCStreamCreator');
  Reflect.set(client, 'GRPCStreamCreator', (grpc: unknown, name: string, create: Creator, cache?: unknown) => {
    const guarded: Creator = (grpcClient) => guardBatchStream(create(grpcClient), options);
    return createStream(grpc, name, guarded, cache);
  });
  const handleError: (grpcClient: unknown, error: unknown) => Promise<void> = method(client, 'handleError');
  Reflect.set(client, 'handleError', async (grpcClient: unknown, error: unknown) => {
    await handleError(grpcClient, error).catch(() => undefined);
  });
  let channel: Promise<unknown> | undefined;
  const getChannel: () => Promise<unknown> = method(client, 'getChannel');
  Reflect.set(client, 'getChannel', () => (channel = getChannel()));
  return { client, close: () => closeWithin(CLOSE_DEADLINE_MS, client, () => channel) };
}

/** A hung server must not hold up the stop of this process: after the deadline, what is left is left. */
async function closeWithin(ms: number, client: EventStoreDBClient, channelOf: () => Promise<unknown> | undefined) {
  const signal = new AbortController();
  const orderly = client
    .dispose()
    .then(channelOf)
    .then((channel) => {
      if (channel instanceof Channel) channel.close();
    })
    // Without a connection there is nothing to close.
    .catch(() => undefined)
    .finally(() => signal.abort());
  await Promise.race([orderly, pause(ms, signal.signal)]);
}

/**
 * Whether the connected server takes batch appends; asks it, if that is not known yet. Appends wait for
 * the same answer, which the client requests without any deadline.
 */
export async function supportsBatchAppend(client: EventStoreDBClient): Promise<boolean> {
  const supports: (definition: unknown) => Promise<boolean> = method(client, 'supports');
  return supports(StreamsService.batchAppend);
}

/** A member that is protected in the client's types. @throws TypeError in a version that lacks it */
export function method<M extends (...args: never[]) => unknown>(client: EventStoreDBClient, name: string): M {
  const found: unknown = Reflect.get(client, name);
  if (typeof found !== 'function') throw new TypeError(`this version of @eventstore/db-client has no ${name}`);
  return found as M;
}

function guardBatchStream(stream: unknown, { onDefect, isAlone, onBroken }: GuardOptions): unknown {
  // Only the stream of batch appends is written to; reads and subscriptions are plain Readables.
  if (!(stream instanceof Duplex)) return stream;
  for (const listener of stream.listeners('data')) {
    stream.off('data', listener as (chunk: unknown) => void);
    stream.on('data', (answer: unknown) => {
      try {
        Reflect.apply(listener, stream, [answer]);
      } catch (error) {
        onDefect(error);
      }
    });
  }
  for (const listener of stream.listeners('error')) {
    stream.off('error', listener as (error: Error) => void);
    stream.on('error', (error: unknown) => {
      if (isAlone()) Reflect.apply(listener, stream, [error]);
      else onBroken(error);
    });
  }
  const write: Duplex['write'] = stream.write.bind(stream);
  Reflect.set(stream, 'write', (request: unknown) => {
    write(request);
    return true;
  });
  return stream;
}
