import type { Platform } from '#libs/platform/runtime/index.ts';
import { composeFeatures, type FeatureConfig } from '#services/features.ts';
import type { RoleContext } from '#services/role.ts';

/** For roles on the stores of a test, whose log is known to be complete. */
export function roleContext(platform: Platform, config?: Partial<FeatureConfig>): RoleContext {
  return { platform, features: composeFeatures(platform, config), logChecked: Promise.resolve() };
}
