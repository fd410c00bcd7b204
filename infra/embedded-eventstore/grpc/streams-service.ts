// event_store.client.streams.Streams. Read and BatchAppend pass bytes through
// instead of the generated messages; the rest is rare.
import { StreamsService } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { DeleteReq, ReadReq, TombstoneReq } from '@eventstore/db-client/generated/streams_pb.js';
import type { sendUnaryData, ServerReadableStream, ServerUnaryCall, ServerWritableStream } from '@grpc/grpc-js';
import { setMaxListeners } from 'node:events';
import type { EventLog } from '../log/event-log.ts';
import { append } from './append.ts';
import { batchAppend } from './batch-append.ts';
import type { BatchCall } from './batch-append.ts';
import { answer } from './answer.ts';
import { stopping } from './errors.ts';
import type { AppendResp, DeleteResp, TombstoneResp } from './messages.ts';
import { OpenCalls, Outgoing } from './outgoing.ts';
import { read } from './read.ts';
import { deleteStream, tombstoneStream } from './remove.ts';
import type { GrpcService } from './service.ts';

const passThrough = (bytes: Buffer): Buffer => bytes;

const definition = {
  ...StreamsService,
  read: { ...StreamsService.read, responseSerialize: passThrough },
  append: { ...StreamsService.append, requestDeserialize: passThrough },
  batchAppend: { ...StreamsService.batchAppend, requestDeserialize: passThrough, responseSerialize: passThrough },
};

export function streamsService(log: EventLog): GrpcService {
  const openCalls = new OpenCalls();
  const stop = new AbortController();
  // One listener for each unary append under way.
  setMaxListeners(0, stop.signal);
  const open = (call: ServerWritableStream<ReadReq, Buffer> | BatchCall): Outgoing => {
    const out = new Outgoing(call);
    openCalls.add(out);
    return out;
  };
  return {
    definition,
    implementation: {
      read: (call: ServerWritableStream<ReadReq, Buffer>) => {
        const out = open(call);
        read(log, call.request, out).catch((error: unknown) => out.fail(error));
      },
      append: (
        call: ServerReadableStream<Buffer, InstanceType<typeof AppendResp>>,
        callback: sendUnaryData<InstanceType<typeof AppendResp>>,
      ) => void answer(append(log, call, stop.signal), callback),
      batchAppend: (call: BatchCall) => batchAppend(log, call, open(call)),
      delete: (call: ServerUnaryCall<DeleteReq, unknown>, callback: sendUnaryData<InstanceType<typeof DeleteResp>>) => {
        void answer(deleteStream(log, call.request), callback);
      },
      tombstone: (
        call: ServerUnaryCall<TombstoneReq, unknown>,
        callback: sendUnaryData<InstanceType<typeof TombstoneResp>>,
      ) => {
        void answer(tombstoneStream(log, call.request), callback);
      },
    },
    stop: () => {
      stop.abort();
      openCalls.failAll(stopping());
    },
  };
}
