// What every gRPC service of the server has, and its handlers have in common.
import type { sendUnaryData, ServerUnaryCall, ServiceDefinition, UntypedServiceImplementation } from '@grpc/grpc-js';
import { toCallError } from './errors.ts';

export type GrpcService = {
  definition: ServiceDefinition;
  implementation: UntypedServiceImplementation;
  /** Feature names by method name (as in the path, e.g. `Read`); clients ask for them before they call. */
  features?: Record<string, readonly string[]>;
  /** Ends open streams (with CANCELLED) and timers; the log is still open. */
  stop?(): Promise<void> | void;
};

/** Serializer for messages that are bytes already. */
export const passThrough = (bytes: Buffer): Buffer => bytes;

export function unary<Request, Response>(handle: (request: Request) => Promise<Response>) {
  return (call: ServerUnaryCall<Request, Response>, callback: sendUnaryData<Response>): void =>
    void respond(handle(call.request), callback);
}

/** Sends the one response of a call: the result, or the error it rejects with. */
export async function respond<Response>(result: Promise<Response>, callback: sendUnaryData<Response>): Promise<void> {
  let response: Response;
  try {
    response = await result;
  } catch (error) {
    callback(toCallError(error).toStatus());
    return;
  }
  callback(null, response);
}
