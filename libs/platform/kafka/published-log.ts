import type { GlobalPosition } from '#libs/kernel/event.ts';
import {
  comparePositions,
  decodePosition,
  encodePosition,
  holdsEvent,
  type WitnessedLog,
} from '#libs/platform/eventstore/index.ts';
import { NOTHING_PUBLISHED, type RelayCheckpoint } from './relay-checkpoint.ts';

/** The position of a log without events. */
const START_OF_LOG: GlobalPosition = { commit: 0n, prepare: 0n };

/** The log is not the one that the relay has published. */
class OtherLog extends Error {
  override readonly name = 'OtherLog';
  /** The value of `KAFKA_ACCEPT_LOST_EVENT` that accepts the log. */
  readonly event: string;

  constructor(event: string, what: string) {
    super(
      `the log ${what}, which the relay published last: the log was set back, emptied, or replaced. Restore it, or set ` +
        `KAFKA_ACCEPT_LOST_EVENT=${event} for the relays, to publish this log from its start ("Kafka" in docs/operations.md)`,
    );
    this.event = event;
  }
}

/**
 * Where to resume: at the checkpoint, or at the start of another log that was accepted.
 *
 * @throws Error for another log
 */
export async function resumeIn(
  log: WitnessedLog,
  saved: RelayCheckpoint,
  acceptLostEvent: string | null,
): Promise<RelayCheckpoint> {
  try {
    await refuseOtherLog(log, saved);
    return saved;
  } catch (error) {
    if (error instanceof OtherLog && error.event === acceptLostEvent) return NOTHING_PUBLISHED;
    throw error;
  }
}

/**
 * The checkpoint may come from another log, or from this one before it was set back; the log may be longer again.
 *
 * A relay of an older version has saved the position alone: such a position is compared with the end of the log only, and
 * trusted until this relay has published an event.
 *
 * @throws Error for another log
 */
export async function refuseOtherLog(log: WitnessedLog, { position, last }: RelayCheckpoint): Promise<void> {
  if (position === null) return;
  if (last === null) {
    const head = (await log.feed.head()) ?? START_OF_LOG;
    if (comparePositions(head, position) >= 0) return;
    throw new OtherLog(encodePosition(position), `ends before position ${encodePosition(position)}`);
  }
  const isHeld = await holdsEvent(log, last);
  // In a log that was restored from a copy of its events, positions differ. Null: removed from the files.
  const idAtPosition = isHeld ? await log.feed.idAt(decodePosition(last.position)) : null;
  if (isHeld && (idAtPosition === null || idAtPosition === last.id)) return;
  const name = `event ${last.revision} of ${last.stream} (id ${last.id}, position ${last.position})`;
  throw new OtherLog(last.id, `does not hold ${name}`);
}
