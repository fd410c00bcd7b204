import type { DomainEvent } from '#libs/kernel/event.ts';
import { type Config, withinMemory } from '#libs/platform/config/index.ts';
import type { ReadinessProbe } from '#libs/platform/http/index.ts';
import { startBackgroundJob, unlessAborted, type RunningRole } from '#libs/platform/lifecycle/index.ts';
import type { Projection, Projector } from '#libs/platform/readmodel/index.ts';
import {
  GROUP_PREFIX,
  reactorNameOf,
  ReactorRunner,
  type AnyReactor,
  type RecordedStep,
} from '#libs/platform/reactors/index.ts';
import { TipCache } from '#libs/platform/streams/index.ts';
import type { Labels } from '#libs/platform/telemetry/index.ts';
import { BLOB_REFERENCES } from '#services/features.ts';
import type { RoleContext } from '#services/role.ts';

import { startBlobSweeps } from './blob-sweep.ts';

/** Of the processes of all reactors: the next step of a process reads only what was appended since. */
const PROCESS_BYTES = withinMemory(16 * 1024 * 1024);

/** Runs the reactors of all features, and sweeps. The event store distributes the events over all workers. */
export async function start(context: RoleContext, config: Config): Promise<RunningRole> {
  const { platform, features, logChecked } = context;
  const reactors = await startReactors(context, features.reactors, config);
  const sweeps = startBlobSweeps(platform, BLOB_REFERENCES, logChecked);
  return { stop: async () => void (await Promise.all([reactors.stop(), sweeps.stop()])) };
}

/** Runs `reactors` in this process, once the log was checked. */
export async function startReactors(
  {
    platform,
    features,
    logChecked,
  }: Pick<RoleContext, 'platform' | 'logChecked'> & {
    readonly features: Pick<RoleContext['features'], 'projector'>;
  },
  reactors: readonly AnyReactor[],
  { stopTimeoutMs }: Partial<Pick<Config, 'stopTimeoutMs'>> = {},
): Promise<RunningRole> {
  const { store, clock, groups, log, metrics } = platform;
  const names = reactors.map(({ name }) => name);
  if (new Set(names).size < names.length) throw new TypeError(`two reactors have the same name: ${names.join(', ')}`);
  if (names.length === 0) log.debug('no feature has a reactor');
  else log.info({ reactors: names }, 'running reactors');

  const attempts = metrics.counter('reactor_attempts_total', 'Attempts of this worker at events, by their outcome', [
    'reactor',
    'outcome',
  ]);
  const tips = new TipCache(PROCESS_BYTES);
  const runners = reactors.map((reactor) => {
    const { name } = reactor;
    const runner = new ReactorRunner(reactor, {
      store,
      clock,
      tips,
      groups,
      log,
      stopTimeoutMs,
      onAttempt: (outcome) => attempts.add({ reactor: name, outcome }),
      // So that readers see the outcome at once; otherwise the projector applies it a moment later.
      onRecorded: (recorded) => void applied(recorded, features.projector).catch(() => undefined),
    });
    const job = startBackgroundJob({
      name: `reactor ${name}`,
      log,
      async run(signal) {
        await unlessAborted(logChecked, signal);
        await runner.run(signal);
      },
    });
    return { name, runner, job };
  });
  observe(platform, runners);
  platform.probes.push(reactorsProbe(runners));
  return { stop: async () => void (await Promise.all(runners.map(({ job }) => job.stop()))) };
}

async function applied({ process, run, ...of }: RecordedStep, projector: Projector): Promise<void> {
  const [first, ...later] = run?.events ?? [];
  if (run === null || first === undefined || !('project' in process)) {
    await projector.catchUp(process.category, of.organizationId, of.id);
    return;
  }
  const { before, after } = run;
  await projector.applyAppended(process as Projection<unknown, DomainEvent>, {
    ...of,
    before,
    after,
    events: [first, ...later],
  });
}

type Runners = readonly { readonly name: string; readonly runner: Pick<ReactorRunner, 'progress'> }[];

function observe({ metrics, groups }: RoleContext['platform'], runners: Runners): void {
  const each = (value: (progress: ReactorRunner['progress']) => number) => (): [Labels, number][] =>
    runners.map(({ name, runner }) => [{ reactor: name }, value(runner.progress)]);
  metrics.observedGauge(
    'reactor_events_in_flight',
    'Events that this worker holds: handled at this moment, or waiting for their next attempt',
    each(({ running, held }) => running + held),
    ['reactor'],
  );
  metrics.observedGauge(
    'reactor_lag_seconds',
    'Age of the oldest event that this worker holds; 0 without any',
    each(({ lagMs }) => lagMs / 1_000),
    ['reactor'],
  );
  metrics.observedGauge(
    'reactor_parked_events',
    'Parked events of a reactor, across all workers',
    async () => {
      if (runners.length === 0) return [];
      const found = await groups.list(GROUP_PREFIX);
      return found.map(({ name, parked }): [Labels, number] => [{ reactor: reactorNameOf(name) }, parked]);
    },
    ['reactor'],
  );
}

/** Reports the progress of the reactors. A worker that is behind stays ready. */
function reactorsProbe(runners: Runners): ReadinessProbe {
  return {
    name: 'reactors',
    async check() {
      const details = runners.map(({ name, runner: { progress } }) => {
        const { isJoined: joined, running, held, lagMs } = progress;
        return [name, { joined, running, held, lag_seconds: lagMs / 1_000 }] as const;
      });
      return { ok: true, detail: Object.fromEntries(details) };
    },
  };
}
