/** Plays random histories of commands one after another until it is stopped, through any failure. */
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { Fault } from '#libs/kernel/faults.ts';
import type { Features } from '#services/features.ts';
import { commandHistories, type Persist, type PlayedChannel, playHistory } from './command-history.ts';

export interface HistoryPlayer {
  /** The channels of all histories that were played to their end. */
  readonly channels: readonly PlayedChannel[];
  /** Plays the current history to its end. Rejects with an error that no failure of a store explains. */
  stop(): Promise<void>;
}

const RETRY_MS = 200;
/** Only bounds a hang: no store is down for so long. */
const PATIENCE_MS = 240_000;

export function playHistories(
  writers: readonly [Features, ...Features[]],
  { seed, pauseMs }: { readonly seed: number; readonly pauseMs: number },
): HistoryPlayer {
  const channels: PlayedChannel[] = [];
  const end = new AbortController();
  const playing = (async () => {
    for (let round = 0; !end.signal.aborted; round++) {
      const [history] = fc.sample(commandHistories({ minSteps: 20, maxSteps: 40 }), { seed: seed + round, numRuns: 1 });
      if (history === undefined) throw new TypeError('no history was made');
      channels.push(...(await playHistory(writers, history, persist)).channels);
      await delay(pauseMs);
    }
  })();
  // A failure is reported by `stop`.
  playing.catch(() => undefined);
  return {
    channels,
    async stop() {
      end.abort();
      await playing;
    },
  };
}

const persist: Persist = async (work) => {
  const deadline = Date.now() + PATIENCE_MS;
  for (let attempt = 1; ; attempt++) {
    try {
      return await work(attempt > 1);
    } catch (error) {
      if (!(error instanceof Fault) || Date.now() > deadline) throw error;
      await delay(RETRY_MS);
    }
  }
};
