import type { GlobalPosition } from '#libs/kernel/event.ts';
import { backoffMs, pause } from '#libs/platform/lifecycle/index.ts';
import type {
  ConsumedItem,
  ConsumeOptions,
  ConsumerGroup,
  ConsumerGroups,
  ConsumerGroupStatus,
  ParkedEvent,
} from './consumer-groups.ts';
import type { FeedRetries, LogStart } from './event-feed.ts';
import { comparePositions } from './position.ts';

/** A group of the event store. */
export interface ServedGroup {
  readonly name: string;
  readonly messageTimeoutMs: number;
  readonly startFrom: LogStart;
  /** Null before the first one. */
  readonly checkpoint: GlobalPosition | null;
  readonly members: number;
  /** Unanswered events of all members. */
  readonly inFlight: number;
  readonly waiting: number;
  /** Unanswered events, and those that are being parked. */
  readonly outstanding: number;
  readonly parked: number;
}

/** One membership, from its start to its first failure. */
export interface OpenMembership {
  /** @throws the error that ended the membership */
  items(): AsyncGenerator<ConsumedItem, void, undefined>;
  close(): void;
}

/** The groups of one event store, as an adapter reaches them. Errors: `Fault`. */
export interface GroupServer {
  all(): Promise<readonly ServedGroup[]>;
  head(): Promise<GlobalPosition | null>;
  /** Does nothing if the group exists. */
  create(group: ConsumerGroup, startFrom: LogStart): Promise<void>;
  /** Drops all members. */
  raiseTimeout(group: ConsumerGroup, startFrom: LogStart): Promise<void>;
  /** Does nothing if the group does not exist. */
  remove(name: string): Promise<void>;
  join(name: string, options: ConsumeOptions): OpenMembership;
  parked(name: string, limit: number): Promise<readonly ParkedEvent[]>;
  retryParked(name: string): Promise<void>;
}

/** Only members park events, because they know the reason. */
export const NEVER_PARK = 2 ** 31 - 1;

/** Of the reason for which an event is parked. */
export const MAX_REASON_LENGTH = 1000;

/** Matches exactly these types. */
export function regexOf(types: readonly string[]): string {
  return `^(${types.map((type) => type.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|')})$`;
}

type FormerGroup = ServedGroup & { readonly consumer: string };

/** A membership that lasted this long does not count among the failed ones. */
const SETTLED_MS = 10_000;

/** {@link ConsumerGroups} on one event store, with the backoff of the feed. */
export class ServedGroups implements ConsumerGroups {
  readonly #server: GroupServer;
  readonly #retries: FeedRetries;

  constructor(server: GroupServer, retries: FeedRetries = {}) {
    this.#server = server;
    this.#retries = retries;
  }

  async *consume(group: ConsumerGroup, options: ConsumeOptions): AsyncGenerator<ConsumedItem, void, undefined> {
    const { signal } = options;
    let failures = 0;
    while (!signal.aborted) {
      let membership: OpenMembership | undefined;
      const startedMs = performance.now();
      try {
        await this.#ensure(group);
        membership = this.#server.join(group.name, options);
        yield* membership.items();
      } catch (error) {
        if (performance.now() - startedMs > SETTLED_MS) failures = 0;
        this.#retries.onInterruption?.(error, ++failures);
        yield { kind: 'left' };
      } finally {
        membership?.close();
      }
      await pause(backoffMs(failures + 1, this.#retries.backoff), signal);
    }
  }

  async list(prefix: string): Promise<readonly ConsumerGroupStatus[]> {
    const groups = await this.#server.all();
    const head = await this.#server.head();
    return groups
      .filter(({ name }) => name.startsWith(prefix))
      .map((group) => statusOf(group, head?.commit ?? 0n))
      .toSorted((a, b) => a.name.localeCompare(b.name));
  }

  parked(name: string, limit: number): Promise<readonly ParkedEvent[]> {
    return this.#server.parked(name, limit);
  }

  retryParked(name: string): Promise<void> {
    return this.#server.retryParked(name);
  }

  /**
   * Creates the group, or raises its message timeout. It is never lowered: an update drops all members, so members of
   * two versions with different timeouts would drop each other forever.
   */
  async #ensure(group: ConsumerGroup): Promise<void> {
    const all = await this.#server.all();
    const found = all.find(({ name }) => name === group.name);
    const { formerConsumerOf = () => null } = group;
    const former = all.flatMap((other) => {
      const consumer = other === found ? null : formerConsumerOf(other.name);
      return consumer === null ? [] : { ...other, consumer };
    });
    if (found === undefined) await this.#server.create(group, await this.#beginningOf(group, former));
    else if (found.messageTimeoutMs < group.messageTimeoutMs) await this.#server.raiseTimeout(group, found.startFrom);
    // The new group began where they were or before, so it delivers the events that they did not handle.
    for (const { name, members, parked } of former) if (members === 0 && parked === 0) await this.#server.remove(name);
  }

  async #beginningOf({ from }: ConsumerGroup, former: readonly FormerGroup[]): Promise<LogStart> {
    if (from === 'start') return 'start';
    if (former.length === 0) return from === 'end' ? ((await this.#server.head()) ?? 'start') : 'start';
    const reached = [...Map.groupBy(former, ({ consumer }) => consumer).values()].map(latestOf);
    if (reached.includes('start')) return 'start';
    return reached.filter((position) => position !== 'start').toSorted(comparePositions)[0] ?? 'start';
  }
}

/** The latest checkpoint of the groups of one consumer. */
function latestOf(groups: readonly FormerGroup[]): LogStart {
  const reached = groups.map(({ checkpoint, startFrom }) => checkpoint ?? startFrom);
  return (
    reached
      .filter((from) => from !== 'start')
      .toSorted(comparePositions)
      .at(-1) ?? 'start'
  );
}

function statusOf(group: ServedGroup, head: bigint): ConsumerGroupStatus {
  const { name, members, inFlight, waiting, outstanding, parked, checkpoint } = group;
  const isBusy = waiting > 0 || outstanding > 0;
  return { name, members, inFlight, waiting, parked, lag: isBusy ? Number(head - (checkpoint?.commit ?? 0n)) : 0 };
}
