import type { Config } from '#libs/platform/config/index.ts';
import { comparePositions, encodePosition, type LogFeed } from '#libs/platform/eventstore/index.ts';
import type { ReadinessProbe } from '#libs/platform/http/index.ts';
import {
  pause,
  type RunningRole,
  settledWithin,
  startBackgroundJob,
  unlessAborted,
} from '#libs/platform/lifecycle/index.ts';
import { EntityCheck, OldReadModels, type Projector } from '#libs/platform/readmodel/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import { PROJECTIONS } from '#services/features.ts';
import { observePosition } from '#services/health.ts';
import type { RoleContext } from '#services/role.ts';

import { ProjectionLoop } from './projection-loop.ts';
import type { ProjectionProgress } from './progress.ts';
import { ReadModelCheck } from './read-model-check.ts';
import { RecentCheckpoints } from './recent-checkpoints.ts';

/** Longest wait for silent brokers when the process stops: nothing depends on their answers. */
const STOP_MS = 3_000;
/** Redis writes to disk every second, replicas lag a little, and a failover takes a while. */
const GO_BACK_MS = 60_000;

/**
 * Applies the events of the log to the read models that no other process has applied. With Kafka, the projectors of all
 * processes divide its partitions among them.
 */
export async function start({ platform, features, logChecked }: RoleContext, config: Config): Promise<RunningRole> {
  const { feed, redis, log } = platform;
  // That of the commands of this process: what they apply is passed over here.
  const { projector, state } = features;
  const usesKafka = config.kafkaBrokers.length > 0 && config.projectorFeed === 'kafka';
  const kafka = usesKafka
    ? (await import('./kafka-source.ts')).openKafkaSource(platform, config, projector.readModels)
    : null;
  const loop = new ProjectionLoop({
    feed,
    ...(kafka !== null && { partitioned: kafka.source }),
    state,
    projector,
    // A single server that loses writes loses their checkpoint as well.
    ...(!redis.isOneServer && { recent: new RecentCheckpoints({ spanMs: GO_BACK_MS, isWhole: () => redis.isReady }) }),
    onLost: (reason) =>
      log.warn({ reason }, 'the projector resumes from the log, as Kafka lacks the messages that follow'),
    onProblem: (error, { phase }) =>
      phase === 'halted'
        ? log.fatal({ err: error }, 'the projector has halted at an event that it cannot apply')
        : log.warn({ err: error }, 'the projector waits for a store'),
  });
  const check = readModelCheck(platform, projector, () => loop.progress.phase === 'live');
  observeLoop(platform, loop, check);
  platform.metrics.observedGauge(
    'projector_states_bytes',
    'Memory of the states that the projector has folded last',
    () => projector.foldedBytes,
  );
  // A Redis (or a node of it) that comes back may have lost its newest writes.
  const stopRestarting = redis.onReady(() => {
    loop.goBack();
    check.again();
  });
  const job = startBackgroundJob({
    name: 'projection',
    log,
    async run(signal) {
      // Following another log would overwrite the witnesses that the check reads.
      await unlessAborted(logChecked, signal);
      await loop.run(signal);
    },
  });
  const old = new OldReadModels(redis, projector.readModels);
  const cleaning = startBackgroundJob({
    name: 'old read models',
    log,
    run: (signal) => removeOld(old, { loop, log, signal }),
  });
  const checking = startBackgroundJob({ name: 'check of the read models', log, run: (signal) => check.run(signal) });
  return {
    async stop() {
      stopRestarting();
      await Promise.all([settledWithin(STOP_MS, job.stop()), cleaning.stop(), settledWithin(STOP_MS, checking.stop())]);
      await kafka?.close();
    },
  };
}

function readModelCheck(platform: Platform, projector: Projector, isLive: () => boolean): ReadModelCheck {
  const { feed, metrics, log } = platform;
  const repaired = metrics.counter(
    'read_model_repairs_total',
    'Entities whose read models lacked or contradicted events, and were folded again',
  );
  return new ReadModelCheck({
    feed,
    check: new EntityCheck({ ...platform, projector, projections: PROJECTIONS }),
    categories: projector.readModels.map(({ category }) => category),
    isLive,
    onRepaired({ category, organizationId, id }) {
      repaired.add();
      log.warn({ category, organization_id: organizationId, id }, 'repaired a read model that differed from the log');
    },
    onFailure: (error) => log.warn({ err: error }, 'a read model could not be compared with the log'),
  });
}

function observeLoop(platform: Platform, loop: ProjectionLoop, check: ReadModelCheck): void {
  const { metrics, probes, feed } = platform;
  metrics.observedCounter(
    'projector_events_seen_total',
    'Events that this process has read since its start',
    () => loop.progress.eventsSeen,
  );
  observePosition(platform, {
    name: 'projector_position',
    help: 'Commit position up to which the read models hold the log',
    read: () => loop.progress.position,
  });
  metrics.observedGauge(
    'read_model_entities_checked',
    'Entities that the current or the last check has compared with the log',
    () => check.progress.entities,
  );
  probes.push(projectionProbe(loop, feed, check));
}

/** Longer than a rolling upgrade takes. */
const CLEAN_EVERY_MS = 10 * 60_000;

async function removeOld(
  old: OldReadModels,
  { loop, log, signal }: { readonly loop: ProjectionLoop; readonly log: Platform['log']; readonly signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    const removed = loop.progress.phase === 'live' ? await old.removeUnused() : [];
    if (removed.length > 0) log.info({ prefixes: removed }, 'removed read models of older versions');
    await pause(CLEAN_EVERY_MS, signal);
  }
}

/**
 * Shows how far the read models are behind. A process is not ready before it has reached the end of the log once:
 * until then lists may answer 503. Later, being behind is no reason to take it out of service, because single entities
 * are then folded on the spot; being stuck is one.
 */
export function projectionProbe(
  loop: ProjectionLoop,
  feed: LogFeed,
  check?: Pick<ReadModelCheck, 'progress'>,
): ReadinessProbe {
  let hasCaughtUp = false;
  return {
    name: 'projection',
    async check() {
      const { phase, position, problem, eventsSeen, source } = loop.progress;
      const head = await feed.head();
      const caughtUp = head === null || (position !== null && comparePositions(position, head) >= 0);
      hasCaughtUp ||= phase === 'live';
      return {
        ok: hasCaughtUp && phase !== 'halted' && problem === null,
        detail: {
          phase,
          problem,
          events_seen: eventsSeen,
          ...sourceDetail(source),
          position: position && encodePosition(position),
          head: head && encodePosition(head),
          caught_up: caughtUp,
          ...(check && { check: check.progress }),
        },
      };
    },
  };
}

/** `behind`: messages of a partition that were there, and not applied, when the last one was; null before the first. */
function sourceDetail(source: ProjectionProgress['source']): Record<string, unknown> {
  if (source === 'log') return { feed: 'log' };
  const partitions = source.map(({ partition, position, behind }) => [
    partition,
    { position: encodePosition(position), behind },
  ]);
  return { feed: 'kafka', partitions: Object.fromEntries(partitions) };
}
