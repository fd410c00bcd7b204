/**
 * Derives a key from its secret: the id is the first half of the secret's SHA-256, so a presented secret identifies the
 * key's stream and document, and no stored data reveals the secret.
 */
import { timingSafeEqual } from 'node:crypto';

import type { EntityId } from '#libs/kernel/ids.ts';
import { API_KEY_PREFIX, createApiKey, digestOf, isWellFormedApiKey } from '#libs/platform/http/index.ts';

/** A secret, and the values derived from it that may be stored. */
export interface NewKey {
  readonly secret: string;
  readonly id: EntityId;
  readonly digest: string;
  readonly lastFour: string;
}

/** @param secret of a key that the operator chose */
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
 * Whether a text can be a key; others are refused before any look-up. Generated keys have a checksum; one that the
 * operator chose (`PARLEY_BOOTSTRAP_KEY`) must only have an allowed length and allowed characters.
 */
export function canBeKey(presented: string): boolean {
  return presented.startsWith(API_KEY_PREFIX) ? isWellFormedApiKey(presented) : OWN_KEY.test(presented);
}

/** Compares digests (64 hex digits) in constant time. */
export function isSameDigest(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one, 'latin1'), Buffer.from(other, 'latin1'));
}
