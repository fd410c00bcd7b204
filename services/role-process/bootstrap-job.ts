import type { Config } from '#libs/platform/config/index.ts';
import {
  pause,
  startBackgroundJob,
  StartRefusal,
  throwUncaught,
  unlessAborted,
  type Role,
} from '#libs/platform/lifecycle/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import { bootstrapOn } from '#services/bootstrap.ts';
import { refuseLostLog } from '#services/log-check.ts';

/** With both stores there, nothing is served before the log is checked; while one is away, the start does not wait. */
const CHECK_WAIT_MS = 1_000;

/**
 * Checks the log and makes the first organization as soon as the stores can be reached; until then the process is not
 * ready. Any number of processes may do it at once: the log takes the events of one, and the others find them there.
 */
export const bootstrapJob: Role<Platform, Config> = {
  name: 'bootstrap',
  async start(platform, { bootstrapKey }) {
    const { log } = platform;
    let ok = false;
    platform.probes.push({ name: 'bootstrap', check: async () => ({ ok }) });
    const done = new AbortController();
    const job = startBackgroundJob({
      name: 'bootstrap',
      log,
      backoff: { maxMs: 3_000 },
      async run(signal) {
        await unlessAborted(refuseLostLog(platform), signal);
        await unlessAborted(bootstrapOn(platform, { bootstrapKey, dataDir: null }), signal);
        ok = true;
        done.abort();
      },
      // A key that belongs to somebody else stays so.
      isFatal: (error) => error instanceof StartRefusal,
      onFatal: throwUncaught,
    });
    await pause(CHECK_WAIT_MS, done.signal);
    return job;
  },
};
