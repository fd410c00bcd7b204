import type { ReadinessProbe } from '#libs/platform/http/index.ts';
import type { Projector } from '#libs/platform/readmodel/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

/**
 * Shows whether reads of this process lag behind its own commands because Redis refuses writes, and applies what is
 * missing as soon as Redis takes it. Until then reads of these entities answer 503. A Redis, or a node of it, that is
 * away is for the probe of Redis to judge.
 */
export function readModelProbe({ unapplied }: Pick<Projector, 'unapplied'>, redis: Platform['redis']): ReadinessProbe {
  return {
    name: 'read_model',
    async check() {
      const isApplied = await unapplied.apply().then(
        () => true,
        () => false,
      );
      return { ok: isApplied || !redis.isReady, detail: { entities_behind: unapplied.size } };
    },
  };
}
