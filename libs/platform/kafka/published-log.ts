import { comparePositions, encodePosition, holdsEvent } from '#libs/platform/eventstore/index.ts';
import type { EventStore, LogFeed } from '#libs/platform/eventstore/index.ts';
import { NOTHING_PUBLISHED, type RelayCheckpoint } from './relay-checkpoint.ts';

export interface PublishedLog {
  readonly feed: Pick<LogFeed, 'head'>;
  readonly store: Pick<EventStore, 'readStream'>;
}

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
  log: PublishedLog,
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
export async function refuseOtherLog(
  { feed, store }: PublishedLog,
  { position, last }: RelayCheckpoint,
): Promise<void> {
  if (position === null) return;
  if (last === null) {
    const head = await feed.head();
    if (head !== null && comparePositions(head, position) >= 0) return;
    throw new OtherLog(encodePosition(position), `ends before position ${encodePosition(position)}`);
  }
  if (await holdsEvent(store, last)) return;
  const name = `event ${last.revision} of ${last.stream} (id ${last.id}, position ${last.position})`;
  throw new OtherLog(last.id, `does not hold ${name}`);
}
