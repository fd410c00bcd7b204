// Streams.BatchAppend: one long-lived call per client carries many concurrent appends. A correlation id identifies
// each; it may come in several chunks, and gets exactly one response, in any order.
import { status, type ServerDuplexStream } from '@grpc/grpc-js';
import { messageOf } from '#libs/kernel/faults.ts';
import { Fields } from '#libs/platform/protobuf/index.ts';
import type { DeleteRequest, EventLog, ExpectedRevision } from '../log/event-log.ts';
import {
  type CallError,
  deadlinePassed,
  invalidArgument,
  MAX_APPEND_BYTES,
  requireWritten,
  toCallError,
} from './errors.ts';
import {
  AllStreamPosition,
  Any,
  BatchAppendReq,
  BatchAppendResp,
  bytesOf,
  Code,
  GoogleEmpty,
  MaximumAppendSizeExceeded,
  positionIn,
  Status,
  StreamDeleted,
  streamIdentifier,
  Timeout,
  UUID,
  WrongExpectedVersion,
} from './messages.ts';
import type { Outgoing } from './outgoing.ts';
import { EventCollector, parseCondition, parseStreamName, parseUuid } from './proposed-event.ts';

const FIELD = { correlationId: 1, options: 2, proposedMessage: 3, isFinal: 4 } as const;
/** Above this many bytes that wait for the disk, the server stops reading from the client. */
const MAX_PENDING_BYTES = 32 * 1024 * 1024;

export type BatchCall = ServerDuplexStream<Buffer, Buffer>;

type Target = DeleteRequest & { deadline?: number };
type Chunk = { correlationId: Buffer; options: Buffer | undefined; messages: Buffer[]; isFinal: boolean };

/** An append whose last chunk has not arrived yet; `error` is the first problem with it. */
type Arriving = { target: Target | undefined; collector: EventCollector; error: unknown };

export function batchAppend(log: EventLog, call: BatchCall, out: Outgoing): void {
  const arriving = new Map<string, Arriving>();
  let unanswered = 0;
  let ended = false;

  const finish = async (correlationId: Buffer, append: Arriving): Promise<void> => {
    unanswered++;
    const response = await commit(log, append);
    out.write(bytesOf(response.setCorrelationId(UUID.deserializeBinary(correlationId))));
    unanswered--;
    if (ended && unanswered === 0) out.end();
    // Without an append of this call under way, only its next message can check for room again.
    const mayResume = unanswered === 0 || log.pendingBytes < MAX_PENDING_BYTES;
    if (call.isPaused() && mayResume) void out.ready().then(() => call.resume());
  };

  call.on('data', (message: Buffer) => {
    if (out.isClosed) return;
    try {
      const chunk = parseChunk(message);
      const id = parseUuid(chunk.correlationId);
      const append = arriving.get(id) ?? { target: undefined, collector: new EventCollector(), error: undefined };
      arriving.set(id, append);
      add(append, chunk);
      if (!chunk.isFinal) return;
      arriving.delete(id);
      void finish(chunk.correlationId, append);
    } catch (error) {
      // An unreadable chunk has no correlation id to respond to.
      out.fail(invalidArgument(messageOf(error)));
    }
    if (log.pendingBytes >= MAX_PENDING_BYTES || call.writableNeedDrain) call.pause();
  });
  call.on('end', () => {
    ended = true;
    if (unanswered === 0) out.end();
  });
}

async function commit(log: EventLog, append: Arriving): Promise<InstanceType<typeof BatchAppendResp>> {
  const { target, collector, error } = append;
  const response = new BatchAppendResp().setStreamIdentifier(streamIdentifier(target?.stream ?? ''));
  try {
    if (!target) throw error ?? invalidArgument('An append needs options.');
    // As on a real server, the deadline is checked before anything else.
    if (target.deadline !== undefined && target.deadline < Date.now()) throw deadlinePassed();
    if (error !== undefined) throw error;
    const outcome = await log.append({ ...target, events: collector.events });
    const { revision, position } = requireWritten(target, outcome);
    const success = new BatchAppendResp.Success();
    if (revision === undefined) success.setNoStream(new GoogleEmpty());
    else success.setCurrentRevision(String(revision));
    if (position === undefined) success.setNoPosition(new GoogleEmpty());
    else success.setPosition(positionIn(new AllStreamPosition(), position));
    return response.setSuccess(success);
  } catch (failure) {
    return response.setError(toStatus(toCallError(failure), target));
  }
}

/** Adds a chunk. After an error it ignores the rest, so that there is one response. */
function add(append: Arriving, chunk: Chunk): void {
  if (append.error !== undefined) return;
  try {
    if (chunk.options) append.target = parseOptions(chunk.options);
    for (const message of chunk.messages) append.collector.add(message);
  } catch (error) {
    append.error = error;
    append.collector = new EventCollector();
  }
}

function parseChunk(message: Buffer): Chunk {
  const chunk: Chunk = { correlationId: Buffer.alloc(0), options: undefined, messages: [], isFinal: false };
  const fields = new Fields(message);
  while (fields.next()) {
    if (fields.field === FIELD.correlationId) chunk.correlationId = fields.bytes();
    else if (fields.field === FIELD.options) chunk.options = fields.bytes();
    else if (fields.field === FIELD.proposedMessage) chunk.messages.push(fields.bytes());
    else if (fields.field === FIELD.isFinal) chunk.isFinal = fields.varint() === 1;
    else fields.skip();
  }
  return chunk;
}

function parseOptions(bytes: Buffer): Target {
  const options = BatchAppendReq.Options.deserializeBinary(bytes);
  const deadline = options.getDeadline();
  return {
    stream: parseStreamName(options.getStreamIdentifier()),
    expected: options.hasStreamPosition() ? Number(options.getStreamPosition()) : parseCondition(options),
    // Absolute, by the clock of the client.
    ...(deadline ? { deadline: deadline.getSeconds() * 1000 + deadline.getNanos() / 1e6 } : {}),
  };
}

/** google.rpc.Code has the names and numbers of gRPC, but a type of its own. */
const RPC_CODES = new Map([
  [status.INVALID_ARGUMENT, Code.INVALID_ARGUMENT],
  [status.FAILED_PRECONDITION, Code.FAILED_PRECONDITION],
  [status.DEADLINE_EXCEEDED, Code.DEADLINE_EXCEEDED],
  [status.UNAVAILABLE, Code.UNAVAILABLE],
  [status.INTERNAL, Code.INTERNAL],
]);

/** The error as a google.rpc.Status, with a detail that the client recognises by its type name. */
function toStatus(error: CallError, target: Target | undefined): InstanceType<typeof Status> {
  const [type, detail] = detailOf(error, target);
  const details = new Any();
  details.setTypeUrl(`type.googleapis.com/${type}`);
  details.setValue(detail.serializeBinary());
  const rpcStatus = new Status().setMessage(error.message).setDetails(details);
  rpcStatus.setCode(RPC_CODES.get(error.code) ?? Code.UNKNOWN);
  return rpcStatus;
}

function detailOf(
  { code, metadata }: CallError,
  target: Target | undefined,
): [string, { serializeBinary(): Uint8Array }] {
  const [exception] = metadata.get('exception');
  if (target && exception === 'stream-deleted') {
    const detail = new StreamDeleted().setStreamIdentifier(streamIdentifier(target.stream));
    return ['event_store.client.StreamDeleted', detail];
  }
  if (target && exception === 'wrong-expected-version') {
    return [
      'event_store.client.WrongExpectedVersion',
      wrongVersion(target.expected, metadata.get('actual-version')[0]),
    ];
  }
  if (exception === 'maximum-append-size-exceeded') {
    const detail = new MaximumAppendSizeExceeded().setMaxappendsize(MAX_APPEND_BYTES);
    return ['event_store.client.MaximumAppendSizeExceeded', detail];
  }
  if (code === status.DEADLINE_EXCEEDED) return ['event_store.client.Timeout', new Timeout()];
  // The client shows the message of a detail that it does not know; without any detail it would crash.
  return ['google.protobuf.Empty', new GoogleEmpty()];
}

function wrongVersion(expected: ExpectedRevision, current: unknown): InstanceType<typeof WrongExpectedVersion> {
  const detail = new WrongExpectedVersion();
  if (current === undefined) detail.setCurrentNoStream(new GoogleEmpty());
  else detail.setCurrentStreamRevision(String(current));
  if (expected === 'any') return detail.setExpectedAny(new GoogleEmpty());
  if (expected === 'no_stream') return detail.setExpectedNoStream(new GoogleEmpty());
  if (expected === 'stream_exists') return detail.setExpectedStreamExists(new GoogleEmpty());
  return detail.setExpectedStreamPosition(String(expected));
}
