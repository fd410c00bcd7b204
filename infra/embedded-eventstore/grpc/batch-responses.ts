// Answers of BatchAppend. Errors travel inside the answer as a
// google.rpc.Status with a detail that the client knows by its type name.
import { status } from '@grpc/grpc-js';
import type { ExpectedRevision, WriteOutcome } from '../log/event-log.ts';
import { MAX_APPEND_BYTES, toCallError, wrongVersionMessage } from './errors.ts';
import {
  AllStreamPosition,
  Any,
  BatchAppendResp,
  Code,
  GoogleEmpty,
  MaximumAppendSizeExceeded,
  Status,
  StreamDeleted,
  StreamIdentifier,
  Timeout,
  UUID,
  WrongExpectedVersion,
} from './messages.ts';

export type BatchTarget = { stream: string; expected: ExpectedRevision; deadline?: number };

/** google.rpc.Code has the names and numbers of gRPC, but a type of its own. */
const RPC_CODES = new Map([
  [status.INVALID_ARGUMENT, Code.INVALID_ARGUMENT],
  [status.FAILED_PRECONDITION, Code.FAILED_PRECONDITION],
  [status.DEADLINE_EXCEEDED, Code.DEADLINE_EXCEEDED],
  [status.UNAVAILABLE, Code.UNAVAILABLE],
  [status.INTERNAL, Code.INTERNAL],
]);

type Failure = { code: status; message: string; type: string; detail: { serializeBinary(): Uint8Array } };

export function batchOutcome(correlationId: Buffer, target: BatchTarget, outcome: WriteOutcome): Buffer {
  switch (outcome.kind) {
    case 'written':
      return successful(correlationId, target, outcome);
    case 'wrong-revision':
      return failed(correlationId, target, wrongVersion(target, outcome.current));
    case 'stream-deleted': {
      const detail = new StreamDeleted().setStreamIdentifier(identifier(target.stream));
      const message = `Event stream '${target.stream}' is deleted.`;
      return failed(correlationId, target, known(status.FAILED_PRECONDITION, message, 'StreamDeleted', detail));
    }
    case 'deadline-passed':
      return failed(correlationId, target, known(status.DEADLINE_EXCEEDED, 'Timeout', 'Timeout', new Timeout()));
  }
}

/** An append that was never decided: refused, or not written to disk. */
export function batchFailure(correlationId: Buffer, target: BatchTarget | undefined, error: unknown): Buffer {
  const { code, message, metadata } = toCallError(error);
  if (metadata.get('exception')[0] === 'maximum-append-size-exceeded') {
    const detail = new MaximumAppendSizeExceeded().setMaxappendsize(MAX_APPEND_BYTES);
    return failed(correlationId, target, known(code, message, 'MaximumAppendSizeExceeded', detail));
  }
  // With a detail that it does not know, the client shows the message; without any it would crash.
  return failed(correlationId, target, { code, message, type: 'google.protobuf.Empty', detail: new GoogleEmpty() });
}

function known(code: status, message: string, type: string, detail: Failure['detail']): Failure {
  return { code, message, type: `event_store.client.${type}`, detail };
}

function wrongVersion({ stream, expected }: BatchTarget, current: number | undefined): Failure {
  const detail = new WrongExpectedVersion();
  if (current === undefined) detail.setCurrentNoStream(new GoogleEmpty());
  else detail.setCurrentStreamRevision(String(current));
  if (expected === 'any') detail.setExpectedAny(new GoogleEmpty());
  else if (expected === 'no_stream') detail.setExpectedNoStream(new GoogleEmpty());
  else if (expected === 'stream_exists') detail.setExpectedStreamExists(new GoogleEmpty());
  else detail.setExpectedStreamPosition(String(expected));
  const message = wrongVersionMessage(stream, expected, current);
  return known(status.FAILED_PRECONDITION, message, 'WrongExpectedVersion', detail);
}

function successful(
  correlationId: Buffer,
  target: BatchTarget,
  outcome: { revision: number | undefined; position: number | undefined },
): Buffer {
  const success = new BatchAppendResp.Success();
  if (outcome.revision === undefined) success.setNoStream(new GoogleEmpty());
  else success.setCurrentRevision(String(outcome.revision));
  if (outcome.position === undefined) success.setNoPosition(new GoogleEmpty());
  else {
    const position = new AllStreamPosition().setCommitPosition(String(outcome.position));
    success.setPosition(position.setPreparePosition(String(outcome.position)));
  }
  return bytes(answer(correlationId, target).setSuccess(success));
}

function failed(correlationId: Buffer, target: BatchTarget | undefined, failure: Failure): Buffer {
  const details = new Any();
  details.setTypeUrl(`type.googleapis.com/${failure.type}`);
  details.setValue(failure.detail.serializeBinary());
  const error = new Status().setMessage(failure.message).setDetails(details);
  error.setCode(RPC_CODES.get(failure.code) ?? Code.UNKNOWN);
  return bytes(answer(correlationId, target).setError(error));
}

function answer(correlationId: Buffer, target: BatchTarget | undefined): InstanceType<typeof BatchAppendResp> {
  const response = new BatchAppendResp().setCorrelationId(UUID.deserializeBinary(correlationId));
  return response.setStreamIdentifier(identifier(target?.stream ?? ''));
}

function identifier(stream: string): InstanceType<typeof StreamIdentifier> {
  return new StreamIdentifier().setStreamName(Buffer.from(stream));
}

function bytes(message: { serializeBinary(): Uint8Array }): Buffer {
  return Buffer.from(message.serializeBinary());
}
