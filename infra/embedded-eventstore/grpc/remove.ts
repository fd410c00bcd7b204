// Streams.Delete (soft) and Streams.Tombstone (for ever).
import type { DeleteReq, TombstoneReq } from '@eventstore/db-client/generated/streams_pb.js';
import type { DeleteRequest, EventLog, WriteOutcome } from '../log/event-log.ts';
import { isMetastream } from '../log/stream-state.ts';
import { deadlinePassed, invalidArgument, streamDeleted, wrongExpectedVersion } from './errors.ts';
import { DeleteResp, TombstoneResp } from './messages.ts';
import { parseExpectedRevision, parseStreamName } from './proposed-event.ts';

/** @throws CallError, LogWriteError (rejects) */
export async function deleteStream(log: EventLog, request: DeleteReq): Promise<InstanceType<typeof DeleteResp>> {
  const target = parseRequest(request);
  const at = positionOf(target, await log.deleteStream(target));
  const position = new DeleteResp.Position().setCommitPosition(at).setPreparePosition(at);
  return new DeleteResp().setPosition(position);
}

/** @throws CallError, LogWriteError (rejects) */
export async function tombstoneStream(
  log: EventLog,
  request: TombstoneReq,
): Promise<InstanceType<typeof TombstoneResp>> {
  const target = parseRequest(request);
  const at = positionOf(target, await log.tombstoneStream(target));
  const position = new TombstoneResp.Position().setCommitPosition(at).setPreparePosition(at);
  return new TombstoneResp().setPosition(position);
}

function parseRequest(request: DeleteReq | TombstoneReq): DeleteRequest {
  const options = request.getOptions();
  if (!options) throw invalidArgument('A deletion needs options.');
  const stream = parseStreamName(options.getStreamIdentifier());
  if (isMetastream(stream)) throw invalidArgument(`'${stream}' is a metadata stream and goes with its stream.`);
  return { stream, expected: parseExpectedRevision(options) };
}

/** Position of the event that marks the deletion. */
function positionOf({ stream, expected }: DeleteRequest, outcome: WriteOutcome): string {
  switch (outcome.kind) {
    case 'written':
      return String(outcome.position ?? 0);
    case 'wrong-revision':
      throw wrongExpectedVersion(stream, expected, outcome.current);
    case 'stream-deleted':
      throw streamDeleted(stream);
    case 'deadline-passed':
      throw deadlinePassed();
  }
}
