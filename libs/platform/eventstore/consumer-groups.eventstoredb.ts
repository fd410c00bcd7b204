import {
  eventTypeFilter,
  PersistentSubscriptionDoesNotExistError,
  PersistentSubscriptionExistsError,
  persistentSubscriptionToAllSettingsFromDefaults,
  PINNED,
  START,
  type PersistentSubscriptionToAllInfo,
  type PersistentSubscriptionToAllSettings as Settings,
} from '@eventstore/db-client';
import type { GlobalPosition } from '#libs/kernel/event.ts';
import { storeUnavailable } from '#libs/kernel/faults.ts';
import { within } from '#libs/platform/lifecycle/index.ts';
import type { ResolvedEvent } from './client/read-responses.ts';
import { isMissingStream, readFault } from './client-errors.ts';
import type { EventStoreConnection } from './connection.ts';
import type { ConsumeOptions, ConsumerGroup, ParkedEvent } from './consumer-groups.ts';
import type { LogStart } from './event-feed.ts';
import { GroupMembership } from './group-membership.ts';
import { type GroupServer, NEVER_PARK, regexOf, type ServedGroup } from './group-server.ts';

const CALL_DEADLINE_MS = 3000;
const DEADLINE = { deadline: CALL_DEADLINE_MS };

/** {@link GroupServer} on EventStoreDB: persistent subscriptions of the official client. */
export class EventStoreDbGroups implements GroupServer {
  readonly #connection: EventStoreConnection;
  readonly #livenessMs: number | undefined;

  /** @param livenessMs silence of the server after which a member checks that it is alive */
  constructor(connection: EventStoreConnection, livenessMs?: number) {
    this.#connection = connection;
    this.#livenessMs = livenessMs;
  }

  async all(): Promise<readonly ServedGroup[]> {
    const listed = this.#call(this.#connection.client.listPersistentSubscriptionsToAll(DEADLINE));
    // EventStoreDB answers "does not exist" where there is no group at all.
    return ((await unless(PersistentSubscriptionDoesNotExistError, listed)) ?? []).map(servedGroup);
  }

  head(): Promise<GlobalPosition | null> {
    return this.#connection.head();
  }

  async create(group: ConsumerGroup, startFrom: LogStart): Promise<void> {
    const { client } = this.#connection;
    // A filter by prefixes would also match longer types.
    const filter = eventTypeFilter({ regex: regexOf(group.types) });
    const settings = settingsOf(group, startFrom);
    const created = client.createPersistentSubscriptionToAll(group.name, settings, { ...DEADLINE, filter });
    await unless(PersistentSubscriptionExistsError, this.#call(created));
  }

  async raiseTimeout(group: ConsumerGroup, startFrom: LogStart): Promise<void> {
    const { client } = this.#connection;
    await this.#call(client.updatePersistentSubscriptionToAll(group.name, settingsOf(group, startFrom), DEADLINE));
  }

  async remove(name: string): Promise<void> {
    const removed = this.#connection.client.deletePersistentSubscriptionToAll(name, DEADLINE);
    await unless(PersistentSubscriptionDoesNotExistError, this.#call(removed));
  }

  join(name: string, options: ConsumeOptions): GroupMembership {
    return new GroupMembership(this.#connection, name, options, this.#livenessMs);
  }

  async parked(name: string, limit: number): Promise<readonly ParkedEvent[]> {
    const request = { stream: parkedStreamOf(name), from: 'start', wanted: limit, resolvesLinks: true } as const;
    const parked: ParkedEvent[] = [];
    try {
      for await (const items of this.#connection.read(request, { deadlineMs: CALL_DEADLINE_MS })) {
        for (const item of items) if (item.kind === 'event') parked.push(parkedEvent(item));
      }
    } catch (error) {
      if (!isMissingStream(error)) throw error;
    }
    return parked;
  }

  async retryParked(name: string): Promise<void> {
    await this.#call(this.#connection.client.replayParkedMessagesToAll(name, DEADLINE)).catch((error: unknown) => {
      throw readFault(error);
    });
  }

  /** The client asks the server for its features first, without a deadline. */
  #call<T>(call: Promise<T>): Promise<T> {
    return within(CALL_DEADLINE_MS, call, () => storeUnavailable('the event store'));
  }
}

/** Null for an error of this class. @throws `Fault` for others */
async function unless<T>(refusal: new (...args: never[]) => Error, call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof refusal) return null;
    throw readFault(error);
  }
}

function settingsOf({ messageTimeoutMs }: ConsumerGroup, startFrom: LogStart): Settings {
  return persistentSubscriptionToAllSettingsFromDefaults({
    startFrom: startFrom === 'start' ? START : startFrom,
    messageTimeout: messageTimeoutMs,
    maxRetryCount: NEVER_PARK,
    consumerStrategyName: PINNED,
    checkPointLowerBound: 1,
    checkPointAfter: 1000,
    readBatchSize: 100,
  });
}

function servedGroup({ groupName, settings, connections, stats }: PersistentSubscriptionToAllInfo): ServedGroup {
  return {
    name: groupName,
    messageTimeoutMs: settings.messageTimeout,
    startFrom: typeof settings.startFrom === 'object' ? settings.startFrom : 'start',
    checkpoint: stats.lastCheckpointedEventPosition ?? null,
    members: connections.length,
    inFlight: stats.totalInFlightMessages,
    waiting: stats.readBufferCount + stats.retryBufferCount + Number(stats.liveBufferCount),
    outstanding: stats.outstandingMessagesCount,
    parked: Number(stats.parkedMessageCount),
  };
}

function parkedStreamOf(name: string): string {
  return `$persistentsubscription-$all::${name}-parked`;
}

function parkedEvent({ event, link }: ResolvedEvent): ParkedEvent {
  const { added, reason } = toRecord(link?.metadata);
  return {
    stream: event?.stream ?? '(deleted)',
    revision: event?.revision ?? -1,
    type: event?.type ?? '(deleted)',
    parkedAt: String(added ?? (link && new Date(link.createdMs).toISOString()) ?? ''),
    reason: String(reason ?? ''),
  };
}

function toRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
