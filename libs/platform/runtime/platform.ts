import { join } from 'node:path';

import type { Logger } from 'pino';

import { Fault } from '#libs/kernel/faults.ts';
import { StartRefusal, throwUncaught } from '#libs/platform/lifecycle/index.ts';
import type { EmbeddedLog } from '#libs/platform/embedded-log/index.ts';
import {
  connectEventStore,
  type ConsumerGroups,
  type EventStore,
  type LogFeed,
  type StoreClock,
} from '#libs/platform/eventstore/index.ts';
import { type TlsFiles, tlsOptionsOf } from '#libs/platform/config/index.ts';
import { folderBlobStore, s3BlobStore, type BlobStore, type S3Options } from '#libs/platform/blobs/index.ts';
import { openTemporaryFolder } from '#libs/platform/files/index.ts';
import { createFetcher, type Fetcher, type FetcherOptions } from '#libs/platform/fetch/index.ts';
import {
  type Model,
  type ModelEndpoint,
  type ModelEndpointOptions,
  openAICompatibleModel,
} from '#libs/platform/model/index.ts';
import type { ReadinessProbe } from '#libs/platform/http/index.ts';
import { ReadModel } from '#libs/platform/readmodel/index.ts';
import {
  connectRedis,
  isReplyError,
  missingRight,
  TopicSubscriptions,
  type RedisClient,
} from '#libs/platform/redis/index.ts';
import { otlpSpans, type Metrics, type OtlpOptions, type Spans } from '#libs/platform/telemetry/index.ts';
import { Upgrades } from '#libs/platform/websocket/index.ts';

/** The clients, log and metrics that every role works with. A process opens it once, and closes it. */
export interface Platform {
  readonly store: EventStore;
  readonly feed: LogFeed;
  readonly groups: ConsumerGroups;
  readonly clock: StoreClock;
  /** Events of other applications that this process has read and skipped, by reason. */
  readonly foreignEvents: ReadonlyMap<string, number>;
  readonly redis: RedisClient;
  readonly readModel: ReadModel;
  /** Messages that are published in Redis, on one connection (to each node) for the whole process. */
  readonly topics: TopicSubscriptions;
  /** For all requests to addresses that come from outside. */
  readonly fetcher: Fetcher;
  /** The model of agents; null: without a configured model, they quote. */
  readonly model: Model | null;
  /** Files. The same in all processes of one Parley. */
  readonly blobs: BlobStore;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Traces of runs and of the requests that led to them; null: none are exported. */
  readonly spans: Spans | null;
  /** Signs cursors and positions; the same in all processes of one Parley. */
  readonly tokenSecret: string;
  /** The checks of `/health/ready` of this process; roles add theirs when they start. */
  readonly probes: ReadinessProbe[];
  /** Aborts when the process begins to stop, before any part of it stops. */
  readonly stopping: AbortSignal;
  /** Connects the HTTP servers of this process with the role that serves websockets. */
  readonly upgrades: Upgrades;
  /** Folder for files that follow from the log, which may be deleted while no process uses them. Created when needed. */
  readonly cacheDir: string;
  /** Folder for temporary files of this process. Removed by `close`, or by the next process if this one is killed. */
  readonly temporaryDir: string;
  /** `close` waits for these before it closes the clients. */
  readonly closeFirst: (() => Promise<void>)[];
  close(): Promise<void>;
}

export interface PlatformOptions {
  readonly eventstoreUrl: string;
  /** The event store at this URL, if it is in this process. */
  readonly embedded?: EmbeddedLog | undefined;
  readonly redisUrl: string;
  /** A Unix socket of the server of `redisUrl`, which is used instead of the network. */
  readonly redisSocketPath?: string | undefined;
  /** Default: the certificates that Node trusts. */
  readonly redisTls?: TlsFiles;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly tokenSecret: string;
  /** Addresses that may be fetched. Default: public ones, by the system's resolver. */
  readonly fetch?: Omit<FetcherOptions, 'metrics'>;
  /** Default: none. */
  readonly model?: Omit<ModelEndpointOptions, 'metrics'> | null;
  /** Where traces are exported to. Default: nowhere. */
  readonly tracing?: OtlpOptions | null;
  /** Default: never aborts. */
  readonly stopping?: AbortSignal;
  /** Where the folder for temporary files is created, which `close` removes. Default: that of the system. */
  readonly temporaryIn?: string;
  /** Default: the folder for temporary files. */
  readonly cacheDir?: string | undefined;
  /** Folder of the blobs, which the backup needs as well. Default: the folder for temporary files. */
  readonly blobsDir?: string | undefined;
  /** A bucket for the blobs, instead of a folder. Default: none. */
  readonly blobsS3?: S3Options | null;
}

/**
 * Opens the clients of the stores. Neither needs to be up: what needs one that is away fails with a
 * `store_unavailable` fault until it is back. One that is there, and not what its URL says, ends the process with a line
 * that says so.
 */
export async function openPlatform(options: PlatformOptions): Promise<Platform> {
  const { eventstoreUrl, redisUrl, log, metrics, tokenSecret } = options;
  const { store, feed, groups, clock, foreign, close } = await openEventStore(eventstoreUrl, log, options.embedded);
  let lost: Error | null = null;
  const redis = connectRedis(redisUrl, {
    socketPath: options.redisSocketPath,
    ...(options.redisTls !== undefined && { tls: tlsOptionsOf(options.redisTls, 'redis', log) }),
    onError(error) {
      lost = error;
      log.warn({ err: error }, 'redis: connection lost');
    },
    onMisfit: (why) => throwUncaught(new StartRefusal(`REDIS_URL: ${why}`)),
  });
  const topics = new TopicSubscriptions(redis);
  const fetcher = createFetcher({ metrics, ...options.fetch });
  const model = options.model ? openAICompatibleModel({ ...options.model, metrics }) : null;
  const spans = options.tracing ? otlpSpans(options.tracing, { log, metrics }) : null;
  const temporary = openTemporaryFolder('parley-', options.temporaryIn);
  const { blobsS3 = null, blobsDir = join(temporary.path, 'blobs') } = options;
  const blobs = blobsS3 === null ? folderBlobStore(blobsDir) : s3BlobStore(blobsS3, join(temporary.path, 'files'));
  const closeFirst: Platform['closeFirst'] = [];
  return {
    store,
    feed,
    groups,
    clock,
    foreignEvents: foreign,
    redis,
    readModel: new ReadModel(redis, topics),
    topics,
    fetcher,
    blobs,
    model,
    log,
    metrics,
    spans,
    tokenSecret,
    probes: [eventStoreProbe(store), redisProbe(redis, () => lost), modelProbe(model), blobProbe(blobs)],
    stopping: options.stopping ?? new AbortController().signal,
    upgrades: new Upgrades(),
    cacheDir: options.cacheDir ?? temporary.path,
    temporaryDir: temporary.path,
    closeFirst,
    async close() {
      await Promise.all(closeFirst.map((end) => end()));
      await temporary.remove();
      await fetcher.close();
      blobs.close();
      await model?.close();
      await spans?.close();
      topics.close();
      redis.close();
      await close();
    },
  };
}

function openEventStore(url: string, log: Logger, embedded?: EmbeddedLog): ReturnType<typeof connectEventStore> {
  return connectEventStore({
    url,
    embedded,
    onDefect: (error) => log.error({ err: error }, 'event store: an answer was thrown away'),
    onInterruption: (error, failures) =>
      log.warn({ err: error, consecutive_failures: failures }, 'event store: a subscription was interrupted'),
    onForeign: (event, count) =>
      log.info({ ...event, count }, "event store: an event that is not Parley's was skipped"),
    onClockAhead: (aheadMs) => log.warn({ aheadMs }, "The clock of this process is ahead of the event store's"),
  });
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

/** @param lost the error by which the connection was lost last */
function redisProbe(redis: RedisClient, lost: () => Error | null): ReadinessProbe {
  return {
    name: 'redis',
    async check() {
      const nodes = await redis.ping().catch((error: Error) => {
        const reason = redisReason(error.cause) ?? redisReason(lost()) ?? 'it does not answer';
        return { reason };
      });
      if ('reason' in nodes) return { ok: false, detail: nodes };
      const missing = (await Promise.all(redis.nodes().map(missingRight))).find((right) => right !== null);
      if (missing !== undefined)
        return { ok: false, detail: { reason: `the user of REDIS_URL lacks a right: ${missing}` } };
      const away = nodes.filter(({ answers }) => !answers).map(({ node }) => node);
      // Data on the other nodes can be used, and no other process can use more.
      return away.length === 0 ? { ok: true } : { ok: true, detail: { nodes_away: away } };
    },
  };
}

/** The reply of the server, or the code of a failed connection: messages of the latter hold names of hosts. */
function redisReason(error: unknown): string | null {
  if (isReplyError(error)) return error.message;
  return error instanceof Object && 'code' in error ? String(error.code) : null;
}

/** Says what writes the answers of agents. The endpoint is not asked: it costs, and Parley serves without it. */
function modelProbe(model: ModelEndpoint | null): ReadinessProbe {
  const detail = model === null ? { kind: 'extractive', name: 'extractive' } : { kind: model.kind, name: model.name };
  return { name: 'model', check: async () => ({ ok: true, detail }) };
}

/** A store of files that is away does not make the process unready: it serves all else, and no other one has the files. */
function blobProbe(blobs: BlobStore): ReadinessProbe {
  return {
    name: 'blob_store',
    async check() {
      const reason = await blobs.ping().then(() => null, reasonOf);
      return { ok: true, detail: { kind: blobs.kind, answers: reason === null, ...(reason !== null && { reason }) } };
    },
  };
}

/** In the words of the store. */
function reasonOf(error: Error): string {
  return error.cause instanceof Error ? error.cause.message : error.message;
}
