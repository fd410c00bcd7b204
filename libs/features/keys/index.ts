/** API keys, which authenticate callers and hold their scopes. One stream, `key-<id>`, per key. */
import type { Module } from '#libs/platform/runtime/index.ts';

import { keyEntity } from './key.read.ts';

export { KeyAuthenticator, KeyDirectory } from './key-authenticator.ts';
export { canBeKey, newKey, OWN_KEY_FORM } from './key-form.ts';
export { Keys, type KeyDescription } from './key.read.ts';
export { keyRoutes } from './key.http.ts';
export { keyScope } from './key.ts';

export const keysModule = { name: 'keys', projections: [keyEntity.projection] } satisfies Module;
