import type { Config } from '#libs/platform/config/index.ts';
import { comparePositions, encodePosition } from '#libs/platform/eventstore/index.ts';
import type { EventFeed } from '#libs/platform/eventstore/index.ts';
import type { ReadinessProbe } from '#libs/platform/http/index.ts';
import { pause, startBackgroundJob } from '#libs/platform/lifecycle/index.ts';
import type { Role } from '#libs/platform/lifecycle/index.ts';
import { OldReadModels } from '#libs/platform/readmodel/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import { composeReadModels, skippedEvents } from '#services/features.ts';

import { ProjectionLoop } from './projection-loop.ts';

/** Brings every event of the log into the read models, as far as nobody else has done so already. */
export const projectorRole: Role<Platform, Config> = {
  name: 'projector',
  async start(platform) {
    const { feed, redis, log, metrics } = platform;
    const { projector, state } = composeReadModels(platform);
    const loop = new ProjectionLoop({
      feed,
      state,
      projector,
      onProblem: (error, { phase }) =>
        phase === 'halted'
          ? log.fatal({ err: error }, 'the projector has halted at an event that it cannot apply')
          : log.warn({ err: error }, 'the projector waits for a store'),
    });
    metrics.observedGauge('projector_events_seen', 'Events that this process has projected or found projected', () => {
      return loop.progress.eventsSeen;
    });
    metrics.observedGauge(
      'events_skipped',
      'Events of unknown types that this process has passed over, each time it read them: those of a newer Parley',
      skippedEvents,
    );
    platform.probes.push(projectionProbe(loop, feed));
    // A Redis (or a node of it) that comes back may have lost its newest writes: go back to what it says it has.
    const restart = (): void => loop.restart();
    const stopRestarting = redis.onReady(restart);
    const job = startBackgroundJob({ name: 'projection', log, run: (signal) => loop.run(signal) });
    const old = new OldReadModels(redis);
    const cleaning = startBackgroundJob({
      name: 'old read models',
      log,
      run: (signal) => removeOld(old, { loop, log, signal }),
    });
    return {
      async stop() {
        stopRestarting();
        await Promise.all([job.stop(), cleaning.stop()]);
      },
    };
  },
};

/** Longer than it takes to replace the processes of an older version, one after another. */
const LOOK_EVERY_MS = 10 * 60_000;

async function removeOld(
  old: OldReadModels,
  { loop, log, signal }: { readonly loop: ProjectionLoop; readonly log: Platform['log']; readonly signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    const removed = loop.progress.phase === 'live' ? await old.look() : [];
    if (removed.length > 0) log.info({ versions: removed }, 'read models of older versions of Parley were removed');
    await pause(LOOK_EVERY_MS, signal);
  }
}

/**
 * Shows how far the read models are behind. Being behind is no reason to take a process out of service: single
 * entities are then folded on the spot. Not getting on is.
 */
function projectionProbe(loop: ProjectionLoop, feed: EventFeed): ReadinessProbe {
  return {
    name: 'projection',
    async check() {
      const { phase, position, problem, eventsSeen } = loop.progress;
      const head = await feed.head();
      const caughtUp = head === null || (position !== null && comparePositions(position, head) >= 0);
      return {
        ok: phase !== 'halted' && problem === null,
        detail: {
          phase,
          problem,
          events_seen: eventsSeen,
          position: position && encodePosition(position),
          head: head && encodePosition(head),
          caught_up: caughtUp,
        },
      };
    },
  };
}
