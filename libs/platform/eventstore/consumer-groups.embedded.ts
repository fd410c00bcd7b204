import type { EmbeddedLog, EmbeddedMembership } from '#libs/platform/embedded-log/index.ts';
import type { GlobalPosition } from '#libs/kernel/event.ts';
import { admitText } from '#libs/kernel/text.ts';
import { WakeUp } from '#libs/platform/lifecycle/index.ts';
import type { ConsumedItem, ConsumeOptions, ConsumerGroup, Delivery, ParkedEvent } from './consumer-groups.ts';
import { type EmbeddedEvents, type LogEvent, positionOf } from './embedded-events.ts';
import type { LogStart } from './event-feed.ts';
import { type GroupServer, MAX_REASON_LENGTH, type OpenMembership, regexOf, type ServedGroup } from './group-server.ts';

/**
 * {@link GroupServer} on the embedded event store of this process. The groups are in its thread, which sends the positions
 * of the delivered events: the events are those that all consumers of this process share.
 */
export class EmbeddedGroups implements GroupServer {
  readonly #events: EmbeddedEvents;

  constructor(events: EmbeddedEvents) {
    this.#events = events;
  }

  async all(): Promise<readonly ServedGroup[]> {
    const groups = await this.#call((log) => log.groups());
    return groups.map(({ startFrom, checkpoint, ...group }) => ({
      ...group,
      startFrom: startFrom === 0 ? 'start' : positionOf(startFrom),
      checkpoint: checkpoint === null ? null : positionOf(checkpoint),
    }));
  }

  async head(): Promise<GlobalPosition | null> {
    const head = await this.#events.head();
    return head === 0 ? null : positionOf(head);
  }

  create(group: ConsumerGroup, startFrom: LogStart): Promise<void> {
    return this.#call((log) => log.createGroup(group.name, settingsOf(group, startFrom)));
  }

  raiseTimeout(group: ConsumerGroup, startFrom: LogStart): Promise<void> {
    return this.#call((log) => log.updateGroup(group.name, settingsOf(group, startFrom)));
  }

  remove(name: string): Promise<void> {
    return this.#call((log) => log.deleteGroup(name));
  }

  join(name: string, options: ConsumeOptions): OpenMembership {
    return new Membership(this.#events, name, options);
  }

  async parked(name: string, limit: number): Promise<readonly ParkedEvent[]> {
    const parked = await this.#call((log) => log.parked(name, limit));
    return parked.map(({ event, createdMs, metadata }) => {
      const { added, reason } = JSON.parse(metadata) as Partial<Record<string, unknown>>;
      return {
        stream: event?.stream ?? '(deleted)',
        revision: event?.revision ?? -1,
        type: event?.type ?? '(deleted)',
        parkedAt: String(added ?? new Date(createdMs).toISOString()),
        reason: String(reason ?? ''),
      };
    });
  }

  retryParked(name: string): Promise<void> {
    return this.#call((log) => log.replayParked(name));
  }

  #call<T>(call: (log: EmbeddedLog) => Promise<T>): Promise<T> {
    return this.#events.answer(() => call(this.#events.log));
  }
}

function settingsOf({ messageTimeoutMs, types }: ConsumerGroup, startFrom: LogStart) {
  return { messageTimeoutMs, types: regexOf(types), startFrom: startFrom === 'start' ? 0 : Number(startFrom.commit) };
}

/** Events that are looked up together. */
const MAX_TAKEN = 64;

interface Delivered {
  readonly id: string;
  readonly position: number;
}

class Membership implements OpenMembership {
  readonly #events: EmbeddedEvents;
  readonly #name: string;
  readonly #options: ConsumeOptions;
  #membership: EmbeddedMembership | undefined;
  #isClosed = false;
  #delivered: Delivered[] = [];
  #failure: Error | undefined;
  readonly #delivery = new WakeUp();

  constructor(events: EmbeddedEvents, name: string, options: ConsumeOptions) {
    this.#events = events;
    this.#name = name;
    this.#options = options;
  }

  async *items(): AsyncGenerator<ConsumedItem, void, undefined> {
    const { bufferSize, signal } = this.#options;
    const end = (): void => this.#end(this.#events.closed.reason);
    signal.addEventListener('abort', this.#delivery.wake);
    this.#events.closed.addEventListener('abort', end);
    try {
      const membership = await this.#events.answer(() => this.#join(bufferSize));
      yield { kind: 'joined' };
      while (!signal.aborted) {
        for (const delivery of await this.#take(membership)) {
          yield { kind: 'delivery', delivery };
          if (signal.aborted) return;
        }
        if (this.#failure !== undefined) throw this.#failure;
        if (this.#delivered.length > 0) continue;
        await this.#delivery.sleep();
      }
    } finally {
      signal.removeEventListener('abort', this.#delivery.wake);
      this.#events.closed.removeEventListener('abort', end);
    }
  }

  /** Leaves at once if it is closed by then: an answer may come after its deadline. */
  async #join(bufferSize: number): Promise<EmbeddedMembership> {
    const membership = await this.#events.log.join(this.#name, bufferSize, {
      onDelivery: (id, position) => {
        this.#delivered.push({ id, position });
        this.#delivery.wake();
      },
      onDropped: (error) => this.#end(error),
    });
    this.#membership = membership;
    if (this.#isClosed) membership.leave();
    return membership;
  }

  #end(failure: Error): void {
    this.#failure = failure;
    this.#delivery.wake();
  }

  close(): void {
    this.#isClosed = true;
    this.#membership?.leave();
  }

  /** Acknowledges foreign events: the store selects events by their types alone. */
  async #take(membership: EmbeddedMembership): Promise<readonly Delivery[]> {
    const taken = this.#delivered.splice(0, MAX_TAKEN);
    if (taken.length === 0) return [];
    const found = await this.#events.at(taken.map(({ position }) => position).filter((position) => position > 0));
    const byPosition = new Map(found.map((event) => [event.position, event]));
    return taken.flatMap(({ id, position }) => {
      const delivery = deliveryOf(id, byPosition.get(position), membership);
      if (delivery === null) membership.acknowledge(id);
      return delivery ?? [];
    });
  }
}

function deliveryOf(id: string, found: LogEvent | undefined, membership: EmbeddedMembership): Delivery | null {
  const event = found?.event ?? null;
  if (event === null || event.foreign !== undefined) return null;
  return {
    event,
    acknowledge: () => membership.acknowledge(id),
    park: (reason) => membership.park(id, admitText(reason, MAX_REASON_LENGTH)),
  };
}
