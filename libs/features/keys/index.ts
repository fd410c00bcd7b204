/**
 * API keys: who calls, and what for. One stream, `key-<id>`, for each.
 *
 *     const changes = new KeyChanges(platform);
 *     const keys = new KeyCommands(stores, changes);
 *     const users = new UserCommands(stores, {
 *       onDeactivated: (organizationId, userId) => changes.announce({ kind: 'user-deactivated', organizationId, userId }),
 *     });
 *     const authenticator = new KeyAuthenticator({ directory: new KeyDirectory(platform), changes });
 *     const stop = changes.subscribe(authenticator);
 */
export { bootstrap, FIRST_ORGANIZATION, refuseUnusableKey } from './bootstrap.ts';
export type { Bootstrapped, BootstrapParts } from './bootstrap.ts';
export { KeyAuthenticator } from './key-authenticator.ts';
export { KeyChanges } from './key-changes.ts';
export type { KeyChange, KeyChangeAnnouncer, KeyChangeListener } from './key-changes.ts';
export { KeyDirectory } from './key-directory.ts';
export type { KnownKey } from './known-key.ts';
export { endOf } from './key.decider.ts';
export type { Grantor, Key, KeyRejection } from './key.decider.ts';
export { KEY, keyScope } from './key.events.ts';
export type { KeyScope } from './key.events.ts';
export { KeyCommands } from './keys.commands.ts';
export type { KeyDescription, KeyResult, NewKeyResult } from './keys.commands.ts';
export { keyProjection, keyResource } from './keys.projection.ts';
export { KeyQueries } from './keys.queries.ts';
export { keyRoutes } from './keys.routes.ts';
export type { KeyRouteParts } from './keys.routes.ts';
export { createKeyBody, rotateKeyBody } from './keys.schemas.ts';
