/*
 * Commands that callers send again: those with an idempotency key. Redis remembers keys, but may lose the
 * newest of them when it dies; the log does not, so it is asked as well.
 */
import type { EntityId } from '#libs/kernel/ids.ts';
import type { EventStore, StoredEvent } from '#libs/platform/eventstore/index.ts';

/** How far the clocks of those who write down times may be apart. */
const CLOCK_SLACK_MS = 60_000;
/** Who got no answer asks again within this time, usually; beyond it, only Redis' memory helps. */
const RECENT_MS = 60_000;
/** The newest events of a stream in which repeated commands are looked for without a hint. */
const MAX_RECENT = 1_000;

/**
 * Which commands have left events in the newest part of a stream, as far as this process has seen it. What
 * is in it is true for ever: events do not go away. Bounded; commands without an idempotency key are not
 * in it, for nobody can repeat them.
 */
export class RecentCommands {
  readonly #ids = new Set<EntityId>();

  get size(): number {
    return this.#ids.size;
  }

  has(commandId: EntityId): boolean {
    return this.#ids.has(commandId);
  }

  /** Takes note of the metadata of an event that is in the log. */
  note(metadata: unknown): void {
    if (textOf(metadata, 'idempotencyKey') === undefined) return;
    const commandId = textOf(metadata, 'commandId');
    if (commandId === undefined) return;
    this.#ids.add(commandId);
    if (this.#ids.size <= MAX_RECENT) return;
    for (const oldest of this.#ids) {
      this.#ids.delete(oldest);
      return;
    }
  }
}

/** Reads the newest part of a stream. @throws `Fault` `store_unavailable` */
export async function readRecentCommands(store: EventStore, stream: string): Promise<RecentCommands> {
  const newestFirst: StoredEvent[] = [];
  for await (const event of store.readStream(stream, { direction: 'backwards', limit: MAX_RECENT })) {
    const newest = newestFirst[0] ?? event;
    if (event.createdMs < newest.createdMs - RECENT_MS) break;
    newestFirst.push(event);
  }
  const recent = new RecentCommands();
  for (const { metadata } of newestFirst.toReversed()) recent.note(metadata);
  return recent;
}

/**
 * The events that a command has left in a stream, oldest first; none if it has not run. Reads backwards, and
 * no further than to when the command can first have run: the cost is that of what has happened since, not
 * of the stream.
 *
 * @throws `Fault` `store_unavailable`
 */
export async function eventsOfCommand(
  store: EventStore,
  stream: string,
  command: { readonly commandId: EntityId; readonly repeatedSinceMs: number },
): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  for await (const event of store.readStream(stream, { direction: 'backwards' })) {
    if (textOf(event.metadata, 'commandId') === command.commandId) events.unshift(event);
    // The events of one command were appended at once, and stand together.
    else if (events.length > 0 || event.createdMs < command.repeatedSinceMs - CLOCK_SLACK_MS) break;
  }
  return events;
}

/** A text in the metadata of a stored event, which are of unknown shape. */
export function textOf(metadata: unknown, name: string): string | undefined {
  if (typeof metadata !== 'object' || metadata === null) return undefined;
  const value: unknown = Reflect.get(metadata, name);
  return typeof value === 'string' ? value : undefined;
}
