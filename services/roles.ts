import type { Platform } from '#libs/platform/runtime/index.ts';

import type { Features } from './features.ts';

/** What the roles of one process share. */
export interface RoleContext {
  readonly platform: Platform;
  readonly features: Features;
}
