/** Frozen schemas of older event versions: never change one. The codec reads these events with the upcasters. */
import { z } from 'zod';

import { upcast } from '#libs/platform/eventstore/index.ts';

/** From before the scope `impersonate`. */
export const keyIssuedV1 = z.object({
  id: z.string(),
  digest: z.string(),
  lastFour: z.string(),
  name: z.string(),
  principal: z.object({ type: z.enum(['user', 'service']), id: z.string() }),
  scopes: z.array(z.enum(['read', 'write', 'admin', 'platform'])),
  expiresAt: z.string().nullable(),
  rotatedFrom: z.string().nullable(),
});

export const keyUpcasters = {
  'KeyIssued.v1': upcast(keyIssuedV1, (data) => ({ type: 'KeyIssued.v2', data })),
};
