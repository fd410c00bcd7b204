import type { EventStoreDBClient } from '@eventstore/db-client';
import {
  PersistentSubscriptionsClient,
  PersistentSubscriptionsService,
} from '@eventstore/db-client/generated/persistent_grpc_pb.js';
import { StreamsClient, StreamsService } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { ClientDuplexStream, ClientReadableStream } from '@grpc/grpc-js';
import { encoded, openCall } from './open-call.ts';
import { encodeJoin, encodeRead, type ReadRequest } from './read-requests.ts';
import { decodeResponse, type ReadItem } from './read-responses.ts';

/** Reads, or subscribes. Only reads require the leader. */
export function openRead(client: EventStoreDBClient, request: ReadRequest): Promise<ClientReadableStream<ReadItem>> {
  const bytes = encodeRead(request);
  return openCall(client, {
    service: StreamsClient,
    name: 'read',
    requiresLeader: typeof request.wanted === 'number',
    make: (grpc, ...rest) =>
      grpc.makeServerStreamRequest(StreamsService.read.path, encoded, decodeResponse, bytes, ...rest),
  });
}

export type MemberCall = ClientDuplexStream<Buffer, ReadItem>;

/** Joins a consumer group on `$all`. */
export function openMember(client: EventStoreDBClient, group: string, bufferSize: number): Promise<MemberCall> {
  return openCall<MemberCall>(client, {
    service: PersistentSubscriptionsClient,
    name: 'join',
    make: (grpc, ...rest) => {
      const { path } = PersistentSubscriptionsService.read;
      const member = grpc.makeBidiStreamRequest(path, encoded, decodeResponse, ...rest);
      member.write(encodeJoin(group, bufferSize));
      return member;
    },
  });
}
