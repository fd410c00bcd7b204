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
import { storeUnavailable } from '#libs/kernel/faults.ts';
import { backoffMs, pause, within } from '#libs/platform/lifecycle/index.ts';
import { isMissingStream, readFault } from './client-errors.ts';
import type { EventStoreConnection } from './connection.ts';
import type {
  ConsumedItem,
  ConsumeOptions,
  ConsumerGroup,
  ConsumerGroups,
  ConsumerGroupStatus,
  ParkedEvent,
} from './consumer-groups.ts';
import type { EventStoreDbFeedOptions } from './event-feed.eventstoredb.ts';
import { GroupMembership } from './group-membership.ts';
import { comparePositions } from './position.ts';

const CALL_DEADLINE_MS = 3000;
/** A membership that lasted this long does not count among the failed ones. */
const SETTLED_MS = 10_000;
/** Only members park events, because they know the reason. */
const NEVER_PARK = 2 ** 31 - 1;

/** `consumer`: see `formerConsumerOf`. */
type FormerGroup = PersistentSubscriptionToAllInfo & { readonly consumer: string };

/** {@link ConsumerGroups} on EventStoreDB, with the timers and the backoff of the feed. */
export class EventStoreDbConsumerGroups implements ConsumerGroups {
  readonly #connection: EventStoreConnection;
  readonly #options: EventStoreDbFeedOptions;

  constructor(connection: EventStoreConnection, options: EventStoreDbFeedOptions = {}) {
    this.#connection = connection;
    this.#options = options;
  }

  async *consume(group: ConsumerGroup, options: ConsumeOptions): AsyncGenerator<ConsumedItem, void, undefined> {
    const { signal } = options;
    let failures = 0;
    while (!signal.aborted) {
      let membership: GroupMembership | undefined;
      const startedMs = performance.now();
      try {
        await this.#ensure(group);
        membership = new GroupMembership(this.#connection, group.name, options, this.#options.livenessMs);
        yield* membership.items();
      } catch (error) {
        if (performance.now() - startedMs > SETTLED_MS) failures = 0;
        this.#options.onInterruption?.(error, ++failures);
        yield { kind: 'left' };
      } finally {
        membership?.close();
      }
      await pause(backoffMs(failures + 1, this.#options.backoff), signal);
    }
  }

  async list(prefix: string): Promise<readonly ConsumerGroupStatus[]> {
    try {
      const infos = await this.#all();
      const head = await this.#connection.head();
      return infos
        .filter(({ groupName }) => groupName.startsWith(prefix))
        .map((info) => statusOf(info, head?.commit ?? 0n))
        .toSorted((a, b) => a.name.localeCompare(b.name));
    } catch (error) {
      throw readFault(error);
    }
  }

  async parked(name: string, limit: number): Promise<readonly ParkedEvent[]> {
    const read = this.#connection.client.readStream(parkedStreamOf(name), {
      maxCount: limit,
      resolveLinkTos: true,
      requiresLeader: true,
      deadline: CALL_DEADLINE_MS,
    });
    const parked: ParkedEvent[] = [];
    try {
      for await (const { event, link } of read) {
        const { added, reason } = toRecord(link?.metadata);
        parked.push({
          stream: event?.streamId ?? '(deleted)',
          revision: Number(event?.revision ?? -1),
          type: event?.type ?? '(deleted)',
          parkedAt: String(added ?? link?.created.toISOString() ?? ''),
          reason: String(reason ?? ''),
        });
      }
    } catch (error) {
      if (!isMissingStream(error)) throw readFault(error);
    }
    return parked;
  }

  async retryParked(name: string): Promise<void> {
    const options = { deadline: CALL_DEADLINE_MS };
    await this.#call(this.#connection.client.replayParkedMessagesToAll(name, options)).catch((error: unknown) => {
      throw readFault(error);
    });
  }

  /**
   * Creates the group, or raises its message timeout. It is never lowered: an update drops all members, so members of
   * two versions with different timeouts would drop each other forever.
   */
  async #ensure(group: ConsumerGroup): Promise<void> {
    const { client } = this.#connection;
    const options = { deadline: CALL_DEADLINE_MS };
    const found = await this.#existing(client.getPersistentSubscriptionToAllInfo(group.name, options));
    const former = await this.#formerOf(group);
    if (found !== null) {
      if (found.settings.messageTimeout < group.messageTimeoutMs) {
        const raised = settingsOf(group, found.settings.startFrom);
        await this.#call(client.updatePersistentSubscriptionToAll(group.name, raised, options));
      }
      await this.#deleteUnused(former);
      return;
    }
    const settings = settingsOf(group, await this.#beginningOf(group, former));
    const filter = eventTypeFilter({ regex: regexOf(group.types) });
    try {
      await this.#call(client.createPersistentSubscriptionToAll(group.name, settings, { ...options, filter }));
    } catch (error) {
      // Another member has created it.
      if (error instanceof PersistentSubscriptionExistsError) return;
      throw error;
    }
    await this.#deleteUnused(former);
  }

  async #formerOf({ name, formerConsumerOf = () => null }: ConsumerGroup): Promise<readonly FormerGroup[]> {
    return (await this.#all()).flatMap((info) => {
      const consumer = info.groupName === name ? null : formerConsumerOf(info.groupName);
      return consumer === null ? [] : { ...info, consumer };
    });
  }

  async #beginningOf({ from }: ConsumerGroup, former: readonly FormerGroup[]): Promise<Settings['startFrom']> {
    if (from === 'start') return START;
    if (former.length === 0) return from === 'end' ? ((await this.#connection.head()) ?? START) : START;
    const reached = [...Map.groupBy(former, ({ consumer }) => consumer).values()].map(latestOf);
    if (reached.includes(START)) return START;
    return reached.filter((position) => typeof position === 'object').toSorted(comparePositions)[0] ?? START;
  }

  /** The new group began where they were or before, so it delivers the events that they did not handle. */
  async #deleteUnused(former: readonly FormerGroup[]): Promise<void> {
    for (const { groupName, connections, stats } of former) {
      if (connections.length > 0 || Number(stats.parkedMessageCount) > 0) continue;
      const options = { deadline: CALL_DEADLINE_MS };
      const deleted = this.#connection.client.deletePersistentSubscriptionToAll(groupName, options);
      // Null: another member has deleted it.
      await this.#existing(deleted);
    }
  }

  async #all(): Promise<readonly PersistentSubscriptionToAllInfo[]> {
    const call = this.#connection.client.listPersistentSubscriptionsToAll({ deadline: CALL_DEADLINE_MS });
    // EventStoreDB answers "does not exist" where there is no group at all.
    return (await this.#existing(call)) ?? [];
  }

  /** Null if the server answers that the group does not exist. */
  async #existing<T>(call: Promise<T>): Promise<T | null> {
    try {
      return await this.#call(call);
    } catch (error) {
      if (error instanceof PersistentSubscriptionDoesNotExistError) return null;
      throw error;
    }
  }

  /** The client asks the server for its features first, without a deadline. */
  #call<T>(call: Promise<T>): Promise<T> {
    return within(CALL_DEADLINE_MS, call, () => storeUnavailable('event store'));
  }
}

/** The latest checkpoint of the groups of one consumer. */
function latestOf(groups: readonly FormerGroup[]): Settings['startFrom'] {
  const reached = groups.map(({ stats, settings }) => stats.lastCheckpointedEventPosition ?? settings.startFrom);
  return (
    reached
      .filter((from) => typeof from === 'object')
      .toSorted(comparePositions)
      .at(-1) ?? START
  );
}

function settingsOf({ messageTimeoutMs }: ConsumerGroup, startFrom: Settings['startFrom']): Settings {
  return persistentSubscriptionToAllSettingsFromDefaults({
    startFrom,
    messageTimeout: messageTimeoutMs,
    maxRetryCount: NEVER_PARK,
    consumerStrategyName: PINNED,
    checkPointLowerBound: 1,
    checkPointAfter: 1000,
    readBatchSize: 100,
  });
}

/** A filter by prefixes would also match longer types. */
function regexOf(types: readonly string[]): string {
  return `^(${types.map((type) => type.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|')})$`;
}

function statusOf(info: PersistentSubscriptionToAllInfo, head: bigint): ConsumerGroupStatus {
  const { groupName, connections, stats } = info;
  const waiting = stats.readBufferCount + stats.retryBufferCount + Number(stats.liveBufferCount);
  const isBusy = waiting > 0 || stats.outstandingMessagesCount > 0;
  const checkpoint = stats.lastCheckpointedEventPosition?.commit ?? 0n;
  return {
    name: groupName,
    members: connections.length,
    inFlight: stats.totalInFlightMessages,
    waiting,
    parked: Number(stats.parkedMessageCount),
    lag: isBusy ? Number(head - checkpoint) : 0,
  };
}

function parkedStreamOf(name: string): string {
  return `$persistentsubscription-$all::${name}-parked`;
}

function toRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
