import type { Platform } from '#libs/platform/runtime/index.ts';
import { composeFeatures } from '#services/features.ts';
import type { RoleContext } from '#services/role.ts';

/** For roles on the stores of a test, whose log is known to be complete. */
export function roleContext(platform: Platform): RoleContext {
  return { platform, features: composeFeatures(platform), logChecked: Promise.resolve() };
}
