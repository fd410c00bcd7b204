/** API keys, which authenticate callers and hold their scopes. One stream, `key-<id>`, per key. */
import type { Organizations } from '#libs/features/organizations/index.ts';
import type { Authenticator, HttpApp } from '#libs/platform/http/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { KeyAuthenticator } from './key-authenticator.ts';
import { KeyChanges } from './key-changes.ts';
import { KeyDirectory } from './key-directory.ts';
import { keyRoutes } from './key.http.ts';
import { keyEntity, Keys } from './key.read.ts';

export { KeyAuthenticator } from './key-authenticator.ts';
export { KeyChanges, type KeyChange } from './key-changes.ts';
export { KeyDirectory } from './key-directory.ts';
export { canBeKey, newKey, OWN_KEY_FORM } from './key-form.ts';
export { keyEntity, Keys, type KeyDescription } from './key.read.ts';
export { keyScope } from './key.ts';

export const keysModule = {
  name: 'keys',
  projections: [keyEntity.projection],
  create(core: Core, { organizations }: { readonly organizations: Organizations }) {
    const changes = new KeyChanges(core);
    const keys = new Keys(core, changes);
    const authenticator = new KeyAuthenticator({ directory: new KeyDirectory(core), changes });
    return {
      keys,
      changes,
      authenticator,
      /** Subscribes the authenticator to changes of keys until `stop` is called. */
      startAuthenticator: (): { readonly authenticator: Authenticator; stop(): void } => ({
        authenticator,
        stop: changes.subscribe(authenticator),
      }),
      routes: (app: HttpApp) => keyRoutes(app, { keys, organizations }),
    };
  },
} satisfies Module;
