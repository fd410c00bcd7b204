import {
  pause,
  startBackgroundJob,
  StartRefusal,
  throwUncaught,
  unlessAborted,
} from '#libs/platform/lifecycle/index.ts';
import type { BackgroundJob } from '#libs/platform/lifecycle/index.ts';

import { bootstrap } from './first-organization.ts';
import type { Bootstrapped, BootstrapParts } from './first-organization.ts';
import type { RoleContext } from './role.ts';

/** With both stores available, a gateway serves nothing before the log is checked; otherwise it starts all the same. */
const CHECK_WAIT_MS = 1_000;

/** The first organization, its owner and its key, on the stores of a process: see `bootstrap`. */
export function bootstrapOn(
  { platform, features }: Pick<RoleContext, 'platform' | 'features'>,
  options: Pick<BootstrapParts, 'bootstrapKey' | 'dataDir'>,
): Promise<Bootstrapped> {
  const { organizations, users, keys } = features;
  return bootstrap({ store: platform.store, organizations, users, keys, ...options });
}

/**
 * Creates the first organization once the stores answer and the log is checked; until then the process is not ready.
 * Several processes may do it at once: the log takes the events of one, and the others find them there.
 */
export async function startBootstrap(context: RoleContext, bootstrapKey: string | undefined): Promise<BackgroundJob> {
  const { platform, logChecked } = context;
  let ok = false;
  platform.probes.push({ name: 'bootstrap', check: async () => ({ ok }) });
  const job = startBackgroundJob({
    name: 'bootstrap',
    log: platform.log,
    backoff: { maxMs: 3_000 },
    async run(signal) {
      await unlessAborted(logChecked, signal);
      await unlessAborted(bootstrapOn(context, { bootstrapKey, dataDir: null }), signal);
      ok = true;
    },
    // A bootstrap key of another organization never becomes usable.
    isFatal: (error) => error instanceof StartRefusal,
    onFatal: throwUncaught,
  });
  await Promise.race([job.ended, pause(CHECK_WAIT_MS, new AbortController().signal)]);
  return job;
}
