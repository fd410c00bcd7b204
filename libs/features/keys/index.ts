/**
 * API keys: who calls, and what for. One stream, `key-<id>`, for each.
 */
import type { Organizations } from '#libs/features/organizations/index.ts';
import type { Authenticator, HttpApp } from '#libs/platform/http/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { KeyAuthenticator } from './key-authenticator.ts';
import { KeyChanges } from './key-changes.ts';
import { KeyDirectory } from './key-directory.ts';
import { KeyCommands } from './keys.commands.ts';
import { keyProjection } from './keys.projection.ts';
import { KeyQueries } from './keys.queries.ts';
import { keyRoutes } from './keys.routes.ts';

export { bootstrap, FIRST_ORGANIZATION, refuseUnusableKey } from './bootstrap.ts';
export type { Bootstrapped, BootstrapParts } from './bootstrap.ts';
export { KeyAuthenticator } from './key-authenticator.ts';
export { KeyChanges } from './key-changes.ts';
export type { KeyChange } from './key-changes.ts';
export { KeyDirectory } from './key-directory.ts';
export type { KeyRejection } from './key.decider.ts';
export { keyScope } from './key.events.ts';
export { KeyCommands } from './keys.commands.ts';
export type { NewKeyResult } from './keys.commands.ts';
export { keyResource } from './keys.projection.ts';
export { keyRoutes } from './keys.routes.ts';
export { createKeyBody, rotateKeyBody } from './keys.schemas.ts';

export const keysModule = {
  name: 'keys',
  projections: [keyProjection],
  create(core: Core, { organizations }: { readonly organizations: Organizations }) {
    const changes = new KeyChanges(core);
    const commands = new KeyCommands(core, changes, core.commandOptions);
    const queries = new KeyQueries(core.reader);
    const authenticator = new KeyAuthenticator({ directory: new KeyDirectory(core), changes });
    return {
      commands,
      queries,
      changes,
      authenticator,
      /** The authenticator receives announced changes of keys until `stop` is called. */
      startAuthenticator: (): { readonly authenticator: Authenticator; stop(): void } => ({
        authenticator,
        stop: changes.subscribe(authenticator),
      }),
      routes: (app: HttpApp) => keyRoutes(app, { commands, queries, organizations }),
    };
  },
} satisfies Module;
