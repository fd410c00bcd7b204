/**
 * A server of the event store's protocol with scripted responses that a correct server never sends, or sends only at
 * moments that a test cannot control.
 */
import {
  ServerFeaturesService,
  type IServerFeaturesServer,
} from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
import serverFeatures from '@eventstore/db-client/generated/serverfeatures_pb.js';
import { StreamsService } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import streams, {
  type BatchAppendReq,
  type ReadReq,
  type ReadResp,
} from '@eventstore/db-client/generated/streams_pb.js';
import {
  Server,
  ServerCredentials,
  status,
  type handleUnaryCall,
  type ServerDuplexStream,
  type ServerWritableStream,
} from '@grpc/grpc-js';

export type BatchCall = ServerDuplexStream<BatchAppendReq, streams.BatchAppendResp>;
export type ReadCall = ServerWritableStream<ReadReq, ReadResp>;

/** Scripted handlers. Default: there are no events, and every append succeeds. */
export interface Script {
  features?: IServerFeaturesServer['getSupportedMethods'];
  /** Called for every batch stream that a client opens. */
  batchStream?: (call: BatchCall) => void;
  read?: (call: ReadCall) => void;
}

export interface MisbehavingServer {
  readonly url: string;
  stop(): void;
}

export async function startMisbehavingServer(script: Script): Promise<MisbehavingServer> {
  const server = new Server();
  const unimplemented = { code: status.UNIMPLEMENTED, details: 'not scripted' };
  const refuse: handleUnaryCall<unknown, never> = (_, answer) => answer(unimplemented);
  server.addService(ServerFeaturesService, { getSupportedMethods: script.features ?? answerFeatures });
  server.addService(StreamsService, {
    read: script.read ?? ((call: ReadCall) => call.end()),
    batchAppend:
      script.batchStream ?? ((call: BatchCall) => call.on('data', (request) => call.write(succeed(request)))),
    append: refuse,
    delete: refuse,
    tombstone: refuse,
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  return { url: `esdb://127.0.0.1:${port}?tls=false`, stop: () => server.forceShutdown() };
}

export const answerFeatures: IServerFeaturesServer['getSupportedMethods'] = (_, answer) => {
  const batch = new serverFeatures.SupportedMethod()
    .setServiceName('event_store.client.streams.streams')
    .setMethodName('batchappend');
  answer(null, new serverFeatures.SupportedMethods().setEventStoreServerVersion('23.10.0').setMethodsList([batch]));
};

/** The correct response to `request`. */
export function succeed(request: BatchAppendReq): streams.BatchAppendResp {
  const success = new streams.BatchAppendResp.Success().setCurrentRevision('0');
  return new streams.BatchAppendResp().setCorrelationId(request.getCorrelationId()).setSuccess(success);
}
