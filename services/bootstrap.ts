import { bootstrap } from '#libs/features/keys/index.ts';
import type { Bootstrapped, BootstrapParts } from '#libs/features/keys/index.ts';

import type { RoleContext } from './roles.ts';

/** The first organization, its owner and its key, on the stores of a process: see `bootstrap`. */
export function bootstrapOn(
  { platform, features }: RoleContext,
  { bootstrapKey, dataDir }: Pick<BootstrapParts, 'bootstrapKey' | 'dataDir'>,
): Promise<Bootstrapped> {
  const { organizations, users, keys } = features;
  return bootstrap({
    store: platform.store,
    organizations,
    users,
    keys: keys.commands,
    dataDir,
    bootstrapKey,
  });
}
