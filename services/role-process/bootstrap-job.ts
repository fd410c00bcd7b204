import type { Config } from '#libs/platform/config/index.ts';
import { pause, unlessAborted, type Role } from '#libs/platform/lifecycle/index.ts';
import { bootstrapOn } from '#services/bootstrap.ts';
import { startAfterLogCheck } from '#services/log-check.ts';
import type { RoleContext } from '#services/roles.ts';

/** With both stores there, nothing is served before the log is checked; while one is away, the start does not wait. */
const CHECK_WAIT_MS = 1_000;

/**
 * Checks the log and makes the first organization as soon as the stores can be reached; until then the process is not
 * ready. Any number of processes may do it at once: the log takes the events of one, and the others find them there.
 */
export const bootstrapJob: Role<RoleContext, Config> = {
  name: 'bootstrap',
  async start(context, { bootstrapKey }) {
    const { platform } = context;
    let ok = false;
    platform.probes.push({ name: 'bootstrap', check: async () => ({ ok }) });
    const done = new AbortController();
    // A bootstrap key of another organization never becomes usable: its refusal ends the process, too.
    const job = startAfterLogCheck(platform, 'bootstrap', async (signal) => {
      await unlessAborted(bootstrapOn(context, { bootstrapKey, dataDir: null }), signal);
      ok = true;
      done.abort();
    });
    await pause(CHECK_WAIT_MS, done.signal);
    return job;
  },
};
