/**
 * Works around defects of `EventStoreDBClient` (6.2.1), without changing its code:
 *
 * 1. An answer that lacks expected fields throws inside a `data` listener, an uncaught exception that would end the
 *    process. The guard catches and reports the error.
 * 2. While a stream is congested, requests wait in a queue inside a promise executor; when the stream breaks, their
 *    unhandled rejection would end the process. So a stream always reports free capacity. `EventStoreDbStore` bounds the
 *    unanswered appends instead.
 * 3. The client ignores the promise of `handleError`, which rejects when the discovery of a cluster fails meanwhile.
 *
 * These members are `protected` in the client's types but ordinary properties at run time. Decision 89 lists all replaced
 * internals of libraries.
 */
import type { EventStoreDBClient } from '@eventstore/db-client';
import { StreamsService } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import { Channel } from '@grpc/grpc-js';
import { Duplex } from 'node:stream';
import { requireVersion, settledWithin } from '#libs/platform/lifecycle/index.ts';

const CLOSE_DEADLINE_MS = 1000;

type Creator = (grpcClient: unknown) => unknown;
type StreamCreator = (client: unknown, name: string, create: Creator, cache?: unknown) => unknown;

export interface GuardedClient {
  readonly client: EventStoreDBClient;
  /** Ends all calls and closes the connection, which the client's own `dispose` leaves open. */
  close(): Promise<void>;
}

/** Makes `client` safe to use. @param onDefect called with errors that would have ended the process */
export function guardClient(client: EventStoreDBClient, onDefect: (error: unknown) => void): GuardedClient {
  requireVersion('@eventstore/db-client', '6.2.1');
  const createStream: StreamCreator = method(client, 'GRPCStreamCreator');
  Reflect.set(client, 'GRPCStreamCreator', (grpc: unknown, name: string, create: Creator, cache?: unknown) => {
    const guarded: Creator = (grpcClient) => guardStream(create(grpcClient), onDefect);
    return createStream(grpc, name, guarded, cache);
  });
  const handleError: (grpcClient: unknown, error: unknown) => Promise<void> = method(client, 'handleError');
  Reflect.set(client, 'handleError', async (grpcClient: unknown, error: unknown) => {
    await handleError(grpcClient, error).catch(() => undefined);
  });
  let channel: Promise<unknown> | undefined;
  const getChannel: () => Promise<unknown> = method(client, 'getChannel');
  Reflect.set(client, 'getChannel', () => (channel = getChannel()));
  const close = async (): Promise<void> => {
    await client.dispose();
    const opened = await channel;
    if (opened instanceof Channel) opened.close();
  };
  // A silent server must not delay the stop of this process. `close` fails if there is no connection.
  return { client, close: () => settledWithin(CLOSE_DEADLINE_MS, close()) };
}

/** Whether the server supports batch appends. The client requests this once per connection, without a deadline. */
export async function supportsBatchAppend(client: EventStoreDBClient): Promise<boolean> {
  const supports: (definition: unknown) => Promise<boolean> = method(client, 'supports');
  return supports(StreamsService.batchAppend);
}

/** A protected method of the client. @throws TypeError in a version that lacks it */
export function method<M extends (...args: never[]) => unknown>(client: EventStoreDBClient, name: string): M {
  const found: unknown = Reflect.get(client, name);
  if (typeof found !== 'function') throw new TypeError(`this version of @eventstore/db-client has no ${name}`);
  return found as M;
}

function guardStream(stream: unknown, onDefect: (error: unknown) => void): unknown {
  // Reads and subscriptions are plain Readables.
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
  const write: Duplex['write'] = stream.write.bind(stream);
  Reflect.set(stream, 'write', (request: unknown) => {
    write(request);
    return true;
  });
  return stream;
}
