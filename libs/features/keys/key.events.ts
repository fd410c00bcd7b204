/*
 * These names and shapes are the storage format: what was written with them stays in the log for ever.
 * Never change one in place. A new version is a new type, the old one moves to key.events.history.ts
 * with an upcaster.
 */
import { z } from 'zod';

import { defineEvents } from '#libs/platform/eventstore/index.ts';
import type { EventOf } from '#libs/platform/eventstore/index.ts';

import { keyUpcasters } from './key.events.history.ts';

/** Category of the streams, `key-<id>`. The id follows from the secret: see `key-form.ts`. */
export const KEY = 'key';

/**
 * What a key may do. `read` and `write`: the API; `impersonate`: act as others than its own principal; `admin`: users
 * and keys of the own organization; `platform`: all organizations. None includes another one.
 */
export const keyScope = z.enum(['read', 'write', 'impersonate', 'admin', 'platform']);
export type KeyScope = z.infer<typeof keyScope>;

export const keyPrincipal = z.object({ type: z.enum(['user', 'service']), id: z.string() });

export const keyCodec = defineEvents(
  {
    'KeyIssued.v2': z.object({
      id: z.string(),
      /** SHA-256 of the secret in hex: all that is ever stored of it. */
      digest: z.string(),
      /** Last characters of the secret, by which people recognise it. */
      lastFour: z.string(),
      name: z.string(),
      principal: keyPrincipal,
      scopes: z.array(keyScope),
      expiresAt: z.string().nullable(),
      rotatedFrom: z.string().nullable(),
    }),
    /** The key got a successor, and works on until it is revoked or until `graceEndsAt`. */
    'KeyRotated.v1': z.object({ to: z.string(), graceEndsAt: z.string().nullable() }),
    'KeyRevoked.v1': z.object({}),
    /** First and last of a stream: a rotation announced this key and never issued it. It never will be. */
    'KeyWithdrawn.v1': z.object({}),
  },
  { upcasters: keyUpcasters },
);

export type KeyEvent = EventOf<typeof keyCodec>;
export type KeyIssued = Extract<KeyEvent, { type: 'KeyIssued.v2' }>['data'];
