import { parseConfig } from '#libs/platform/config/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import { composeFeatures, type FeatureConfig } from '#services/features.ts';
import type { RoleContext } from '#services/role.ts';

/** For roles on the stores of a test, whose log is known to be complete. `config` overrides defaults. */
export function roleContext(platform: Platform, config: Partial<FeatureConfig> = {}): RoleContext {
  const features = composeFeatures(platform, { ...parseConfig({}), ...config });
  return { platform, features, logChecked: Promise.resolve() };
}
