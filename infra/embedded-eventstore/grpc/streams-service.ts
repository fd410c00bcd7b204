// event_store.client.streams.Streams. Read, Append and BatchAppend exchange
// bytes instead of the generated messages; the other calls are rare.
import { StreamsService } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { DeleteReq, ReadReq, TombstoneReq } from '@eventstore/db-client/generated/streams_pb.js';
import type { sendUnaryData, ServerWritableStream } from '@grpc/grpc-js';
import { setMaxListeners } from 'node:events';
import type { EventLog } from '../log/event-log.ts';
import { batchAppend, type BatchCall } from './batch-append.ts';
import { stoppedBeforeAppend } from './errors.ts';
import type { AppendResp } from './messages.ts';
import { OpenCalls } from './outgoing.ts';
import { read } from './read.ts';
import { passThrough, respond, unary, type GrpcService } from './service.ts';
import { append, deleteStream, tombstoneStream, type AppendCall } from './write.ts';

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
  return {
    definition,
    implementation: {
      read: (call: ServerWritableStream<ReadReq, Buffer>) => {
        const out = openCalls.open(call);
        read(log, call.request, out).catch((error: unknown) => out.fail(error));
      },
      append: (call: AppendCall, callback: sendUnaryData<InstanceType<typeof AppendResp>>) =>
        void respond(append(log, call, stop.signal), callback),
      batchAppend: (call: BatchCall) => batchAppend(log, call, openCalls.open(call)),
      delete: unary((request: DeleteReq) => deleteStream(log, request)),
      tombstone: unary((request: TombstoneReq) => tombstoneStream(log, request)),
    },
    stop: () => {
      stop.abort(stoppedBeforeAppend());
      openCalls.stop();
    },
  };
}
