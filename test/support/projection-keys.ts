/** Keys of the projection state, for tests that read or change it. */
import { CHANNEL_READ_MODEL } from '#libs/features/channels/index.ts';
import { projectionKeys } from '#libs/platform/readmodel/index.ts';
import { PROJECTIONS } from '#services/features.ts';

export const CHANNEL_PROJECTION_KEYS = projectionKeys(CHANNEL_READ_MODEL);

/** Of all categories. */
export const ALL_PROJECTION_KEYS: readonly string[] = PROJECTIONS.flatMap((name) =>
  Object.values(projectionKeys(name)),
);
