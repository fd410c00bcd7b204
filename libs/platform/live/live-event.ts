import type { z } from 'zod';

/** One type of event as listeners are told of it, described by the feature that it is of. */
export interface LiveEventType {
  /** Such as `interaction.posted`. */
  readonly type: string;
  readonly summary: string;
  readonly data: z.ZodType;
}
