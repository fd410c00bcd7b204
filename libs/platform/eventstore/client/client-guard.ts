/**
 * Works around defects of `EventStoreDBClient` (6.2.1), without changing its code: it ignores the promise of `handleError`,
 * which rejects when the discovery of a cluster fails meanwhile, and its `dispose` leaves the connection open.
 *
 * These members are `protected` in the client's types but ordinary properties at run time. Decision 89 lists all replaced
 * internals of libraries.
 */
import type { EventStoreDBClient } from '@eventstore/db-client';
import { StreamsService } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import { Channel } from '@grpc/grpc-js';
import { requireVersion, settledWithin } from '#libs/platform/lifecycle/index.ts';

const CLOSE_DEADLINE_MS = 1000;

export interface GuardedClient {
  readonly client: EventStoreDBClient;
  /** Ends all calls and closes the connection. */
  close(): Promise<void>;
}

/** Makes `client` safe to use. */
export function guardClient(client: EventStoreDBClient): GuardedClient {
  requireVersion('@eventstore/db-client', '6.2.1');
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
