/*
 * Repeated commands: those with an idempotency key. Redis stores the keys, but may lose the newest of them in a failover,
 * so the log is searched for the commands as well.
 */
import { type StreamRevision, streamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { textOf, type EventStore, type StoredEvent } from '#libs/platform/eventstore/index.ts';

import type { CommandContext } from './command-context.ts';

/** How far the clocks of this process, Redis and the event store may differ. */
const CLOCK_SLACK_MS = 60_000;
/** Clients usually repeat an unanswered command within this time; after that, only Redis recognizes it. */
const RECENT_MS = 60_000;
/** Newest events of a stream that are searched for repeated commands. */
const MAX_RECENT = 1_000;
/**
 * The same while Redis does not answer: the cost of reading them once is bounded, and commands in streams with more events
 * wait for Redis. So many are read even if they are older than the key, because a post is identified by its key for ever.
 */
const MAX_SEARCHED = 20_000;
const COMMAND_BYTES = 100;

/**
 * The commands with idempotency keys whose events are among the newest of a stream, as far as this process has read it.
 * Bounded. An entry never becomes wrong, because events are never deleted.
 */
export class RecentCommands {
  /** The revision of an event of each, the oldest first. */
  readonly #commands = new Map<EntityId, StreamRevision>();
  #after: StreamRevision;
  #sinceMs: number;

  /**
   * @param after all commands with later events are noted
   * @param sinceMs all commands since then are noted, by the clock of the event store; Infinity for the newest only
   */
  constructor(after: StreamRevision, sinceMs = Infinity) {
    this.#after = after;
    this.#sinceMs = sinceMs;
  }

  /** Whether as many events were read as are ever read. */
  get isDeep(): boolean {
    return this.#sinceMs !== Infinity;
  }

  /** Whether a command that is not noted has not run since then, in Unix milliseconds. */
  reachesBackTo(ms: number): boolean {
    return this.#sinceMs <= ms - CLOCK_SLACK_MS;
  }

  /** Whether a command that is not noted has no events after the revision, as far as the stream was read. */
  hasAllAfter(revision: StreamRevision): boolean {
    return this.#after <= revision;
  }

  /** Memory of the notes. */
  get bytes(): number {
    return this.#commands.size * COMMAND_BYTES;
  }

  has(commandId: EntityId): boolean {
    return this.#commands.has(commandId);
  }

  /** Adds the command of an event, which follows those before. */
  note({ revision, metadata }: Pick<StoredEvent, 'revision' | 'metadata'>): void {
    if (textOf(metadata, 'idempotencyKey') === undefined) return;
    const commandId = textOf(metadata, 'commandId');
    if (commandId === undefined) return;
    this.#commands.set(commandId, revision);
    if (this.#commands.size <= (this.isDeep ? MAX_SEARCHED : MAX_RECENT)) return;
    for (const [oldest, last] of this.#commands) {
      this.#commands.delete(oldest);
      if (last > this.#after) this.#after = last;
      break;
    }
    // To read the events again would reach back less far.
    if (this.isDeep) this.#sinceMs = Number.MAX_VALUE;
  }
}

/** Whether an earlier request used the command's idempotency key, or its events are among the newest. */
export function isRepeated(
  { repeatedSinceMs, commandId }: CommandContext,
  recent: RecentCommands | undefined,
): boolean {
  return repeatedSinceMs !== undefined || recent?.has(commandId) === true;
}

/** Whether the log was not searched as far as an earlier request may have run the command. */
export function isUnknown({ unknownSinceMs }: CommandContext, recent: RecentCommands | undefined): boolean {
  return unknownSinceMs !== undefined && recent?.reachesBackTo(unknownSinceMs) !== true;
}

/**
 * Reads the newest part of a stream; with `isDeep` as much as is ever read.
 *
 * @throws `Fault` `store_unavailable`
 */
export async function readRecentCommands(
  store: EventStore,
  stream: string,
  { isDeep }: { readonly isDeep: boolean },
): Promise<RecentCommands> {
  const limit = isDeep ? MAX_SEARCHED : MAX_RECENT;
  /** Without the data, which may be large. */
  const newestFirst: Pick<StoredEvent, 'revision' | 'metadata' | 'createdMs'>[] = [];
  for await (const { revision, metadata, createdMs } of store.readStream(stream, { direction: 'backwards', limit })) {
    const newestMs = newestFirst[0]?.createdMs ?? createdMs;
    if (!isDeep && createdMs < newestMs - RECENT_MS) break;
    newestFirst.push({ revision, metadata, createdMs });
  }
  const oldestMs = newestFirst.length < limit ? -Infinity : (newestFirst.at(-1)?.createdMs ?? -Infinity);
  // Of a stream whose events were all removed, no command is known.
  const oldest = newestFirst.at(-1)?.revision ?? Number.MAX_SAFE_INTEGER;
  const recent = new RecentCommands(streamRevision(oldest - 1), isDeep ? oldestMs : Infinity);
  for (const event of newestFirst.toReversed()) recent.note(event);
  return recent;
}

/**
 * The events of a command in a stream, oldest first; none if it has not run. Reads backwards to the earliest time at which
 * the command can have run, so the cost depends on the events since then, not on the length of the stream.
 *
 * @throws `Fault` `store_unavailable`
 */
export async function eventsOfCommand(
  store: EventStore,
  stream: string,
  { commandId, repeatedSinceMs = 0, repeatedPosition }: CommandContext,
): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  const from = repeatedPosition?.stream === stream && { from: streamRevision(repeatedPosition.revision) };
  for await (const event of store.readStream(stream, { direction: 'backwards', ...from })) {
    if (textOf(event.metadata, 'commandId') === commandId) events.unshift(event);
    // The events of one command are one append, so they are adjacent.
    else if (events.length > 0 || event.createdMs < repeatedSinceMs - CLOCK_SLACK_MS) break;
  }
  return events;
}
