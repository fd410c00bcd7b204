/**
 * From a secret to a key: the id is the first half of the secret's SHA-256, so that whoever presents a key
 * names the stream and the document to look at, and nothing that is stored gives the secret away.
 */
import { timingSafeEqual } from 'node:crypto';

import type { EntityId } from '#libs/kernel/ids.ts';
import { API_KEY_PREFIX, createApiKey, digestOf, isWellFormedApiKey } from '#libs/platform/http/index.ts';

/** A secret, and what may be stored of it. */
export interface NewKey {
  readonly secret: string;
  readonly id: EntityId;
  readonly digest: string;
  readonly lastFour: string;
}

/** @param secret given where the operator brings a key of their own */
export function newKey(secret: string = createApiKey()): NewKey {
  const digest = digestOf(secret);
  return { secret, id: keyIdOf(digest), digest, lastFour: secret.slice(-4) };
}

export function keyIdOf(digest: string): EntityId {
  return digest.slice(0, 32);
}

export const OWN_KEY_FORM = 'at least 32 and at most 256 characters of A-Z, a-z, 0-9, _ and -';
const OWN_KEY = /^[A-Za-z0-9_-]{32,256}$/;

/**
 * Whether a text can be a key at all; anything else is refused before any look-up. Keys that we made carry
 * a checksum. One that an operator brought (`PARLEY_BOOTSTRAP_KEY`) is only long and plain enough.
 */
export function canBeKey(presented: string): boolean {
  return presented.startsWith(API_KEY_PREFIX) ? isWellFormedApiKey(presented) : OWN_KEY.test(presented);
}

/** Compares digests (64 hex digits) in a time that does not depend on where they differ. */
export function isSameDigest(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one, 'latin1'), Buffer.from(other, 'latin1'));
}
