// Streams.BatchAppend: one long-lived call per client carries many appends at
// once. Each is told apart by its correlation id, may come in several chunks,
// and is answered exactly once, in any order.
import type { ServerDuplexStream } from '@grpc/grpc-js';
import type { AppendRequest, EventLog, ExpectedRevision } from '../log/event-log.ts';
import { FieldReader } from '../wire/protobuf.ts';
import { batchFailure, batchOutcome } from './batch-responses.ts';
import type { BatchTarget } from './batch-responses.ts';
import { invalidArgument } from './errors.ts';
import { BatchAppendReq } from './messages.ts';
import type { Outgoing } from './outgoing.ts';
import { EventCollector, parseStreamName, parseUuid } from './proposed-event.ts';

const FIELD = { correlationId: 1, options: 2, proposedMessage: 3, isFinal: 4 } as const;
/** With more than this waiting for the disk, the client has to wait too. */
const MAX_PENDING_BYTES = 32 * 1024 * 1024;

export type BatchCall = ServerDuplexStream<Buffer, Buffer>;

/** An append whose last chunk has not come yet. */
type Arriving = { target: BatchTarget | undefined; collector: EventCollector; error: unknown };

type Chunk = { correlationId: Buffer; options: Buffer | undefined; messages: Buffer[]; isFinal: boolean };

/** Serves one BatchAppend call. */
export function batchAppend(log: EventLog, call: BatchCall, out: Outgoing): void {
  const arriving = new Map<string, Arriving>();
  let unanswered = 0;
  let ended = false;

  const finish = async (correlationId: Buffer, { target, collector, error }: Arriving): Promise<void> => {
    unanswered++;
    out.write(await commit(log, correlationId, target, collector, error));
    unanswered--;
    if (ended && unanswered === 0) out.end();
    // With nothing of its own under way, only the next message can tell whether there is room.
    const mayGoOn = unanswered === 0 || log.pendingBytes < MAX_PENDING_BYTES;
    if (call.isPaused() && mayGoOn) void out.ready().then(() => call.resume());
  };

  call.on('data', (message: Buffer) => {
    if (out.isClosed) return;
    try {
      const chunk = parseChunk(message);
      const id = parseUuid(chunk.correlationId);
      const append = arriving.get(id) ?? { target: undefined, collector: new EventCollector(), error: undefined };
      arriving.set(id, append);
      take(append, chunk);
      if (!chunk.isFinal) return;
      arriving.delete(id);
      void finish(chunk.correlationId, append);
    } catch (error) {
      // A chunk that cannot be read has no id to answer to.
      out.fail(invalidArgument(error instanceof Error ? error.message : String(error)));
    }
    if (log.pendingBytes >= MAX_PENDING_BYTES || call.writableNeedDrain) call.pause();
  });
  call.on('end', () => {
    ended = true;
    if (unanswered === 0) out.end();
  });
}

async function commit(
  log: EventLog,
  correlationId: Buffer,
  target: BatchTarget | undefined,
  collector: EventCollector,
  error: unknown,
): Promise<Buffer> {
  if (!target) return batchFailure(correlationId, undefined, error ?? invalidArgument('An append needs options.'));
  // As on a real server, a late append is late whatever else is wrong with it.
  if (target.deadline !== undefined && target.deadline < Date.now()) {
    return batchOutcome(correlationId, target, { kind: 'deadline-passed' });
  }
  if (error !== undefined) return batchFailure(correlationId, target, error);
  try {
    const request: AppendRequest = { ...target, events: collector.events };
    return batchOutcome(correlationId, target, await log.append(request));
  } catch (failure) {
    return batchFailure(correlationId, target, failure);
  }
}

/** Adds a chunk. After an error the rest is only waited for, so that there is one answer. */
function take(append: Arriving, chunk: Chunk): void {
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
  const reader = new FieldReader(message);
  while (reader.next()) {
    if (reader.field === FIELD.correlationId) chunk.correlationId = reader.bytes();
    else if (reader.field === FIELD.options) chunk.options = reader.bytes();
    else if (reader.field === FIELD.proposedMessage) chunk.messages.push(reader.bytes());
    else if (reader.field === FIELD.isFinal) chunk.isFinal = reader.varint() === 1;
    else reader.skip();
  }
  return chunk;
}

function parseOptions(bytes: Buffer): BatchTarget {
  const options = BatchAppendReq.Options.deserializeBinary(bytes);
  const deadline = options.getDeadline();
  return {
    stream: parseStreamName(options.getStreamIdentifier()),
    expected: parseExpected(options),
    // Absolute, by the clock of the client.
    ...(deadline ? { deadline: deadline.getSeconds() * 1000 + deadline.getNanos() / 1e6 } : {}),
  };
}

function parseExpected(options: InstanceType<typeof BatchAppendReq.Options>): ExpectedRevision {
  if (options.hasStreamPosition()) return Number(options.getStreamPosition());
  if (options.hasNoStream()) return 'no_stream';
  return options.hasStreamExists() ? 'stream_exists' : 'any';
}
