// Streams.Append (one append per call: the options first, then one message per
// event), Streams.Delete (soft) and Streams.Tombstone (final).
import type { DeleteReq, TombstoneReq } from '@eventstore/db-client/generated/streams_pb.js';
import type { ServerReadableStream } from '@grpc/grpc-js';
import { unlessAborted } from '#libs/platform/lifecycle/index.ts';
import { Fields } from '#libs/platform/protobuf/index.ts';
import type { AppendRequest, DeleteRequest, EventLog, WriteOutcome } from '../log/event-log.ts';
import { isMetastream } from '../log/stream-state.ts';
import { invalidArgument, requireWritten } from './errors.ts';
import { AppendReq, AppendResp, DeleteResp, Empty, positionIn, TombstoneResp } from './messages.ts';
import { EventCollector, parseTarget } from './proposed-event.ts';

const FIELD = { options: 1, proposedMessage: 2 } as const;

export type AppendCall = ServerReadableStream<Buffer, InstanceType<typeof AppendResp>>;

/**
 * @param stopping aborts with the error of such appends when the server stops: one that has not arrived
 *   completely is refused at once
 * @throws CallError, LogWriteError (rejects)
 */
export async function append(
  log: EventLog,
  call: AppendCall,
  stopping: AbortSignal,
): Promise<InstanceType<typeof AppendResp>> {
  const request = await unlessAborted(collect(call), stopping);
  return toResponse(request, await log.append(request));
}

/** @throws CallError, LogWriteError (rejects) */
export async function deleteStream(log: EventLog, request: DeleteReq): Promise<InstanceType<typeof DeleteResp>> {
  const target = parseDeletion(request);
  const { position = 0 } = requireWritten(target, await log.deleteStream(target));
  return new DeleteResp().setPosition(positionIn(new DeleteResp.Position(), position));
}

/** @throws CallError, LogWriteError (rejects) */
export async function tombstoneStream(
  log: EventLog,
  request: TombstoneReq,
): Promise<InstanceType<typeof TombstoneResp>> {
  const target = parseDeletion(request);
  const { position = 0 } = requireWritten(target, await log.tombstoneStream(target));
  return new TombstoneResp().setPosition(positionIn(new TombstoneResp.Position(), position));
}

function parseDeletion(request: DeleteReq | TombstoneReq): DeleteRequest {
  const options = request.getOptions();
  if (!options) throw invalidArgument('A deletion needs options.');
  const target = parseTarget(options);
  if (isMetastream(target.stream)) {
    throw invalidArgument(`'${target.stream}' is a metadata stream and is deleted with its stream.`);
  }
  return target;
}

async function collect(call: AsyncIterable<Buffer>): Promise<AppendRequest> {
  const collector = new EventCollector();
  let target: DeleteRequest | undefined;
  for await (const chunk of call) {
    const fields = new Fields(chunk);
    while (fields.next()) {
      if (fields.field === FIELD.options) target = parseTarget(AppendReq.Options.deserializeBinary(fields.bytes()));
      else if (fields.field === FIELD.proposedMessage) collector.add(fields.bytes());
      else fields.skip();
    }
  }
  if (!target) throw invalidArgument('An append needs options.');
  return { ...target, events: collector.events };
}

/** In this call a wrong version is a response, not an error. */
function toResponse(request: AppendRequest, outcome: WriteOutcome): InstanceType<typeof AppendResp> {
  if (outcome.kind === 'wrong-revision') {
    return new AppendResp().setWrongExpectedVersion(wrongVersion(request, outcome.current));
  }
  const { revision, position } = requireWritten(request, outcome);
  const success = new AppendResp.Success();
  if (revision === undefined) success.setNoStream(new Empty());
  else success.setCurrentRevision(String(revision));
  if (position === undefined) success.setNoPosition(new Empty());
  else success.setPosition(positionIn(new AppendResp.Position(), position));
  return new AppendResp().setSuccess(success);
}

function wrongVersion({ expected }: AppendRequest, current: number | undefined) {
  const response = new AppendResp.WrongExpectedVersion();
  if (current === undefined) response.setCurrentNoStream(new Empty());
  else response.setCurrentRevision(String(current));
  if (expected === 'any') return response.setExpectedAny(new Empty());
  if (expected === 'no_stream') return response.setExpectedNoStream(new Empty());
  if (expected === 'stream_exists') return response.setExpectedStreamExists(new Empty());
  return response.setExpectedRevision(String(expected));
}
