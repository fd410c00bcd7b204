import type { Config } from '#libs/platform/config/index.ts';
import { RedisIdempotencyStore, type HttpServer, type ReadinessProbe } from '#libs/platform/http/index.ts';
import {
  type RunningRole,
  pause,
  startBackgroundJob,
  unlessAborted,
  type BackgroundJob,
} from '#libs/platform/lifecycle/index.ts';
import { buildApiServer } from '#services/api-server.ts';
import type { RoleContext } from '#services/role.ts';
import { entityOfEvent, type EntityRef } from '#libs/platform/readmodel/index.ts';
import type { StreamRevision } from '#libs/kernel/event.ts';

/** The HTTP API: commands append to the log, reads come from Redis. */
export async function start(context: RoleContext, config: Config): Promise<RunningRole> {
  const { server, stop } = await buildGateway(context, config);
  return { url: await server.listen({ host: config.host, port: config.port }), stop };
}

export interface Gateway {
  readonly server: HttpServer;
  /** Closes the server, and ends its event streams. */
  stop(): Promise<void>;
}

/** Builds the server of the API, which does not listen yet. */
export async function buildGateway(context: RoleContext, config: Config): Promise<Gateway> {
  const { platform, features } = context;
  const { probe, job } = startReadModelProbe(context);
  platform.probes.push(probe);
  const replyBytes = platform.metrics.gauge(
    'idempotency_reply_bytes',
    'Replies to idempotency keys that this process has stored in Redis, and that have not expired',
  );
  const { server, stop } = await buildApiServer(context, config, {
    routes: features.routes,
    idempotency: new RedisIdempotencyStore(platform.redis, { onStored: replyBytes.set }),
    positions: features.reader,
  });
  return {
    server,
    async stop() {
      await job.stop();
      // The server waits for event streams, which only the node ends.
      await features.realtime.node().stop();
      await stop();
    },
  };
}

/** Newest events of the log that are compared with the read models. */
const MAX_EVENTS = 20_000;
/** While projectors are further behind than that. */
const PAUSE_MS = 2_000;

/**
 * Fails while this process has appended events that Redis refused to apply, and applies them as soon as Redis accepts
 * writes. Until then reads of these entities answer 503. A Redis that is away is judged by its own probe.
 *
 * So does it with the events that an earlier process has appended and not applied before it died. Until these are
 * known, the number of entities is null.
 */
export function startReadModelProbe({ platform, features, logChecked }: RoleContext): {
  readonly probe: ReadinessProbe;
  readonly job: BackgroundJob;
} {
  const { unapplied } = features.projector;
  let isKnown = false;
  const job = startBackgroundJob({
    name: 'unapplied events',
    log: platform.log,
    async run(signal) {
      await unlessAborted(logChecked, signal);
      while (!signal.aborted && !isKnown) {
        isKnown = await noteUnapplied({ platform, features }, signal);
        if (!isKnown) await pause(PAUSE_MS, signal);
      }
    },
  });
  const probe: ReadinessProbe = {
    name: 'read_model',
    async check() {
      const isApplied = await unapplied.apply().then(
        () => true,
        () => false,
      );
      return {
        ok: isApplied || !platform.redis.isReady,
        detail: { entities_behind: isKnown ? unapplied.size : null },
      };
    },
  };
  return { probe, job };
}

/**
 * Compares the events after the checkpoint of the projectors with the read models.
 *
 * @returns false if the projectors are too far behind
 * @throws `Fault` `store_unavailable`
 */
async function noteUnapplied({ platform, features }: Omit<RoleContext, 'logChecked'>, signal: AbortSignal) {
  const { projector, state } = features;
  const from = await state.checkpoint();
  if (from === null) return false;
  const newest = new Map<string, EntityRef & { readonly revision: StreamRevision }>();
  const reading = new AbortController();
  const items = platform.feed.subscribe({
    from,
    streamPrefixes: projector.streamPrefixes,
    signal: AbortSignal.any([signal, reading.signal]),
  });
  try {
    let count = 0;
    for await (const item of items) {
      if (item.kind === 'caught-up') break;
      if (item.kind !== 'events') continue;
      count += item.events.length;
      if (count > MAX_EVENTS) return false;
      for (const event of item.events) {
        const entity = entityOfEvent(event);
        if (entity !== null) newest.set(projector.keysOf(entity).revision, { ...entity, revision: event.revision });
      }
    }
  } finally {
    reading.abort();
  }
  signal.throwIfAborted();
  const revisions = await platform.readModel.revisions([...newest.keys()]);
  for (const [index, [key, entity]] of [...newest].entries()) {
    if ((revisions[index] ?? -1) < entity.revision && !projector.unapplied.has(key))
      projector.unapplied.add(key, entity);
  }
  return true;
}
