import { bootstrap } from '#libs/features/keys/index.ts';
import type { Bootstrapped, BootstrapParts } from '#libs/features/keys/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import { featuresOf } from './features.ts';

/** The first organization, its owner and its key, on the stores of a platform: see `bootstrap`. */
export function bootstrapOn(
  platform: Platform,
  { bootstrapKey, dataDir }: Pick<BootstrapParts, 'bootstrapKey' | 'dataDir'>,
): Promise<Bootstrapped> {
  const { organizations, users, keys } = featuresOf(platform);
  return bootstrap({
    store: platform.store,
    organizations,
    users,
    keys: keys.commands,
    dataDir,
    bootstrapKey,
  });
}
