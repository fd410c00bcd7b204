import type { Logger } from 'pino';

import { Fault } from '#libs/kernel/faults.ts';
import { StartRefusal, throwUncaught } from '#libs/platform/lifecycle/index.ts';
import { connectEventStore } from '#libs/platform/eventstore/index.ts';
import type { ConsumerGroups, EventStore, LogFeed, StoreClock } from '#libs/platform/eventstore/index.ts';
import type { ReadinessProbe } from '#libs/platform/http/index.ts';
import { ReadModel } from '#libs/platform/readmodel/index.ts';
import { connectRedis, TopicSubscriptions } from '#libs/platform/redis/index.ts';
import type { RedisClient } from '#libs/platform/redis/index.ts';
import type { Metrics } from '#libs/platform/telemetry/index.ts';
import { Upgrades } from '#libs/platform/websocket/index.ts';

/** The clients, log and metrics that every role works with. A process opens it once, and closes it. */
export interface Platform {
  readonly store: EventStore;
  readonly feed: LogFeed;
  readonly groups: ConsumerGroups;
  readonly clock: StoreClock;
  readonly redis: RedisClient;
  readonly readModel: ReadModel;
  /** What is published in Redis, on one connection (to each node) for the whole process. */
  readonly topics: TopicSubscriptions;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Signs cursors and positions; the same in all processes of one Parley. */
  readonly tokenSecret: string;
  /** What `/health/ready` of this process asks; roles add theirs when they start. */
  readonly probes: ReadinessProbe[];
  /** Aborts when the process begins to stop, before any part of it stops. */
  readonly stopping: AbortSignal;
  /** Connects the HTTP servers of this process with the role that serves websockets. */
  readonly upgrades: Upgrades;
  close(): Promise<void>;
}

export interface PlatformOptions {
  readonly eventstoreUrl: string;
  readonly redisUrl: string;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly tokenSecret: string;
  /** Default: never aborts. */
  readonly stopping?: AbortSignal;
}

/**
 * Opens the clients of the stores. Neither needs to be up: what needs one that is away fails with a
 * `store_unavailable` fault until it is back. One that is there, and not what its URL says, ends the process with a line
 * that says so.
 */
export function openPlatform(options: PlatformOptions): Platform {
  const { eventstoreUrl, redisUrl, log, metrics, tokenSecret } = options;
  const { store, feed, groups, clock, close } = connectEventStore({
    url: eventstoreUrl,
    onDefect: (error) => log.error({ err: error }, 'event store: an answer was thrown away'),
    onInterruption: (error, inARow) => log.warn({ err: error, in_a_row: inARow }, 'event store: the feed broke off'),
    onClockAhead: (aheadMs) => log.warn({ aheadMs }, "The clock of this process is ahead of the event store's"),
  });
  const redis = connectRedis(redisUrl, {
    onError: (error) => log.warn({ err: error }, 'redis: connection lost'),
    onMisfit: (why) => throwUncaught(new StartRefusal(`REDIS_URL: ${why}`)),
  });
  const topics = new TopicSubscriptions(redis);
  return {
    store,
    feed,
    groups,
    clock,
    redis,
    readModel: new ReadModel(redis),
    topics,
    log,
    metrics,
    tokenSecret,
    probes: [eventStoreProbe(store), redisProbe(redis)],
    stopping: options.stopping ?? new AbortController().signal,
    upgrades: new Upgrades(),
    async close() {
      topics.close();
      redis.close();
      await close();
    },
  };
}

function eventStoreProbe(store: EventStore): ReadinessProbe {
  return {
    name: 'event_store',
    async check() {
      try {
        await store.ping();
        return { ok: true };
      } catch (error) {
        if (error instanceof Fault) return { ok: false, detail: { reason: error.message } };
        throw error;
      }
    },
  };
}

function redisProbe(redis: RedisClient): ReadinessProbe {
  return {
    name: 'redis',
    async check() {
      const nodes = await redis.ping();
      const away = nodes.filter(({ answers }) => !answers).map(({ node }) => node);
      // What lives on the others can be had, and no other process can have more.
      return away.length === 0 ? { ok: true } : { ok: true, detail: { nodes_away: away } };
    },
  };
}
