/*
 * These names and shapes are the storage format: what was written with them stays in the log for ever.
 * Never change one in place. A new version is a new type, the old one moves to user.events.history.ts
 * with an upcaster.
 */
import { z } from 'zod';

import { defineEvents } from '#libs/platform/eventstore/index.ts';
import type { EventOf } from '#libs/platform/eventstore/index.ts';

/** Category of the streams, `user-<id>`. A user belongs to one organization, for good. */
export const USER = 'user';

export const userCodec = defineEvents({
  'UserCreated.v1': z.object({
    id: z.string(),
    displayName: z.string(),
    email: z.string().nullable(),
    imageUrl: z.string().nullable(),
  }),
  'UserRenamed.v1': z.object({ displayName: z.string() }),
  'UserEmailChanged.v1': z.object({ email: z.string().nullable() }),
  'UserImageChanged.v1': z.object({ imageUrl: z.string().nullable() }),
  /** For good: there is no way back, so whoever was told of it need never ask again. */
  'UserDeactivated.v1': z.object({}),
});

export type UserEvent = EventOf<typeof userCodec>;
export type UserCreated = Extract<UserEvent, { type: 'UserCreated.v1' }>['data'];
