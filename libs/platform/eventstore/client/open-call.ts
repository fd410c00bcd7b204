import type { EventStoreDBClient } from '@eventstore/db-client';
import type { CallOptions, Client, Metadata } from '@grpc/grpc-js';
import { method } from './client-guard.ts';

type CallArguments = [Metadata, CallOptions];

/** How a call is made. */
export interface Opening<Call> {
  /** The generated class of the service's client. */
  readonly service: unknown;
  readonly name: string;
  /** A follower refuses the call and names the leader, to which the client then connects. */
  readonly requiresLeader?: boolean;
  /** The open calls by connection, of which one is used again. The client removes those that have ended. */
  readonly open?: WeakMap<object, Call>;
  make(grpc: Client, ...rest: CallArguments): Call;
}

/** Makes a call without a deadline on the connection of the official client, which connects again after its failures. */
export function openCall<Call>(
  client: EventStoreDBClient,
  { service, name, requiresLeader = false, open, make }: Opening<Call>,
): Promise<Call> {
  const create: (
    service: unknown,
    name: string,
    make: (grpc: Client) => Call,
    open?: WeakMap<object, Call>,
  ) => () => Promise<Call> = method(client, 'GRPCStreamCreator');
  const callArguments: (options: object, callOptions: CallOptions) => CallArguments = method(client, 'callArguments');
  const makeCall = (grpc: Client): Call => make(grpc, ...callArguments({ requiresLeader }, { deadline: Infinity }));
  return create(service, name, makeCall, open)();
}

/** Serialises requests that are encoded already. */
export const encoded = (bytes: Buffer): Buffer => bytes;
