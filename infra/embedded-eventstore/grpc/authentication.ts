// Basic credentials, required for every call of a service. As on a real server, a call without credentials gets
// PERMISSION_DENIED and one with wrong credentials UNAUTHENTICATED; the official client maps both to AccessDeniedError.
import {
  type sendUnaryData,
  type ServerDuplexStream,
  type ServerUnaryCall,
  status,
  type UntypedHandleCall,
} from '@grpc/grpc-js';
import { hash, timingSafeEqual } from 'node:crypto';
import type { Credentials } from '../credentials.ts';
import { CallError } from './errors.ts';
import type { GrpcService } from './service.ts';

/** The arguments of the handlers of all four kinds of calls. */
type AnyCall = ServerUnaryCall<unknown, unknown> & ServerDuplexStream<unknown, unknown>;
type Handle = (call: AnyCall, callback: sendUnaryData<unknown>) => void;

const DENIED = new CallError(status.PERMISSION_DENIED, 'Access Denied: this event store requires credentials.', {
  exception: 'access-denied',
});
const UNAUTHENTICATED = new CallError(status.UNAUTHENTICATED, 'The credentials are not those of this event store.');

/** The same service, for callers that send these credentials. */
export function authenticated(service: GrpcService, { username, password }: Credentials): GrpcService {
  const expected = digest(`Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`);
  const refusalOf = ({ metadata }: AnyCall): CallError | undefined => {
    const [sent] = metadata.get('authorization');
    if (sent === undefined) return DENIED;
    return timingSafeEqual(digest(sent), expected) ? undefined : UNAUTHENTICATED;
  };
  const guarded = Object.entries(service.implementation).map(([name, handle]): [string, UntypedHandleCall] => {
    const serve = handle as Handle;
    const streams = service.definition[name]?.responseStream === true;
    const guard: Handle = (call, callback) => {
      const refusal = refusalOf(call)?.toStatus();
      if (!refusal) serve(call, callback);
      else if (streams) call.emit('error', refusal);
      else callback(refusal);
    };
    return [name, guard as UntypedHandleCall];
  });
  return { ...service, implementation: Object.fromEntries(guarded) };
}

function digest(text: string | Buffer): Buffer {
  return hash('sha256', text, 'buffer');
}
