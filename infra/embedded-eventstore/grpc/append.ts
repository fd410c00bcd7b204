// Streams.Append: one append per call; the options first, then one message per event.
import type { ServerReadableStream } from '@grpc/grpc-js';
import type { AppendRequest, EventLog, ExpectedRevision, WriteOutcome } from '../log/event-log.ts';
import { FieldReader } from '../wire/protobuf.ts';
import { deadlinePassed, invalidArgument, stoppedBeforeAppend, streamDeleted } from './errors.ts';
import { AppendReq, AppendResp, Empty } from './messages.ts';
import { EventCollector, parseExpectedRevision, parseStreamName } from './proposed-event.ts';

const FIELD = { options: 1, proposedMessage: 2 } as const;

type AppendCall = ServerReadableStream<Buffer, InstanceType<typeof AppendResp>>;

/**
 * @param stopping aborts when the server stops: what has not arrived whole is refused at once
 * @throws CallError, LogWriteError (rejects)
 */
export async function append(
  log: EventLog,
  call: AppendCall,
  stopping: AbortSignal,
): Promise<InstanceType<typeof AppendResp>> {
  const request = await unlessStopping(collect(call), stopping);
  return toResponse(request, await log.append(request));
}

async function unlessStopping<T>(work: Promise<T>, stopping: AbortSignal): Promise<T> {
  const stopped = Promise.withResolvers<never>();
  const stop = (): void => stopped.reject(stoppedBeforeAppend());
  if (stopping.aborted) stop();
  stopping.addEventListener('abort', stop);
  try {
    return await Promise.race([work, stopped.promise]);
  } finally {
    stopping.removeEventListener('abort', stop);
  }
}

async function collect(call: AppendCall): Promise<AppendRequest> {
  const collector = new EventCollector();
  let target: { stream: string; expected: ExpectedRevision } | undefined;
  for await (const chunk of messagesOf(call)) {
    const reader = new FieldReader(chunk);
    while (reader.next()) {
      if (reader.field === FIELD.options) target = parseOptions(reader.bytes());
      else if (reader.field === FIELD.proposedMessage) collector.add(reader.bytes());
      else reader.skip();
    }
  }
  if (!target) throw invalidArgument('An append needs options.');
  return { ...target, events: collector.events };
}

async function* messagesOf(call: AppendCall): AsyncGenerator<Buffer> {
  for await (const chunk of call) if (Buffer.isBuffer(chunk)) yield chunk;
}

function parseOptions(bytes: Buffer): { stream: string; expected: ExpectedRevision } {
  const options = AppendReq.Options.deserializeBinary(bytes);
  return {
    stream: parseStreamName(options.getStreamIdentifier()),
    expected: parseExpectedRevision(options),
  };
}

/** In this call a wrong version is an answer, not an error. */
function toResponse(request: AppendRequest, outcome: WriteOutcome): InstanceType<typeof AppendResp> {
  switch (outcome.kind) {
    case 'written':
      return new AppendResp().setSuccess(success(outcome));
    case 'wrong-revision':
      return new AppendResp().setWrongExpectedVersion(wrongVersion(request.expected, outcome.current));
    case 'stream-deleted':
      throw streamDeleted(request.stream);
    case 'deadline-passed':
      throw deadlinePassed();
  }
}

function success(outcome: { revision: number | undefined; position: number | undefined }) {
  const response = new AppendResp.Success();
  if (outcome.revision === undefined) response.setNoStream(new Empty());
  else response.setCurrentRevision(String(outcome.revision));
  if (outcome.position === undefined) return response.setNoPosition(new Empty());
  const position = new AppendResp.Position();
  position.setCommitPosition(String(outcome.position)).setPreparePosition(String(outcome.position));
  return response.setPosition(position);
}

function wrongVersion(expected: ExpectedRevision, current: number | undefined) {
  const response = new AppendResp.WrongExpectedVersion();
  if (current === undefined) response.setCurrentNoStream(new Empty());
  else response.setCurrentRevision(String(current));
  if (expected === 'any') return response.setExpectedAny(new Empty());
  if (expected === 'no_stream') return response.setExpectedNoStream(new Empty());
  if (expected === 'stream_exists') return response.setExpectedStreamExists(new Empty());
  return response.setExpectedRevision(String(expected));
}
