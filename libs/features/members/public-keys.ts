import { createPublicKey } from 'node:crypto';

import { calculateJwkThumbprint, type CryptoKey, importJWK, type JWK } from 'jose';

import type { PublicKey } from './token-issuer.ts';

export type Algorithm = PublicKey['alg'];

const MIN_RSA_BITS = 2_048;
/** Verification with larger ones costs milliseconds. */
const MAX_RSA_BITS = 4_096;

/** Members of JWKs that belong to private and symmetric keys. */
const SECRET_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

/** A key that was not accepted; the message says why, in words for its owner. */
export class UnusableKey extends Error {
  override readonly name = 'UnusableKey';
}

export interface VerificationKey {
  readonly algorithm: Algorithm;
  readonly kid: string | undefined;
  /** RFC 7638: the same for one key, whatever its `kid`. */
  readonly thumbprint: string;
  readonly key: CryptoKey;
}

/**
 * A public key as it is stored, from a JWK or from PEM.
 *
 * @throws UnusableKey for private and symmetric keys, for other algorithms, and for RSA keys of an unusual size
 */
export async function publicKeyOf(given: unknown): Promise<PublicKey> {
  const jwk = typeof given === 'string' ? jwkOfPem(given) : given;
  if (!isRecord(jwk)) throw new UnusableKey('a key is a JWK or a PEM text');
  if (jwk['kty'] === 'oct') throw new UnusableKey('the key is symmetric: register a public key');
  if (SECRET_MEMBERS.some((name) => name in jwk)) {
    throw new UnusableKey('the key is private: register its public half, and replace it, because it left its owner');
  }
  const algorithm = algorithmOf(jwk);
  const text = (name: string): string | undefined => (typeof jwk[name] === 'string' ? jwk[name] : undefined);
  const names = algorithm === 'RS256' ? (['n', 'e'] as const) : (['crv', 'x', 'y'] as const);
  const members = names.map((name) => [name, text(name)] as const).filter(([, value]) => value !== undefined);
  const kid = text('kid');
  const key: PublicKey = {
    alg: algorithm,
    kty: String(jwk['kty']),
    ...(kid !== undefined && { kid }),
    ...Object.fromEntries(members),
  };
  await verificationKeyOf(key);
  return key;
}

/** @throws UnusableKey */
export async function verificationKeyOf(key: PublicKey): Promise<VerificationKey> {
  const imported = await importJWK(key as JWK, key.alg).catch(() => null);
  if (imported === null || imported instanceof Uint8Array || imported.type !== 'public') {
    throw new UnusableKey('the key cannot be read');
  }
  const { modulusLength: bits } = imported.algorithm as { readonly modulusLength?: number };
  if (bits !== undefined && (bits < MIN_RSA_BITS || bits > MAX_RSA_BITS)) {
    throw new UnusableKey(`an RSA key has ${MIN_RSA_BITS} to ${MAX_RSA_BITS} bits`);
  }
  return { algorithm: key.alg, kid: key.kid, thumbprint: await calculateJwkThumbprint(key as JWK), key: imported };
}

/** The algorithm that the key is for, by its type; the key may name it, but not another one. */
function algorithmOf({ kty, crv, alg, use }: Readonly<Record<string, unknown>>): Algorithm {
  const own =
    kty === 'OKP' && crv === 'Ed25519'
      ? 'EdDSA'
      : kty === 'EC' && crv === 'P-256'
        ? 'ES256'
        : kty === 'RSA'
          ? 'RS256'
          : null;
  if (own === null) throw new UnusableKey('the key must be one of Ed25519 (EdDSA), P-256 (ES256) or RSA (RS256)');
  if (alg !== undefined && alg !== own && !(own === 'EdDSA' && alg === 'Ed25519')) {
    throw new UnusableKey(`the key is for ${String(alg)}; only EdDSA, ES256 and RS256 are supported`);
  }
  if (use !== undefined && use !== 'sig') throw new UnusableKey('the key is not for signatures');
  return own;
}

function jwkOfPem(pem: string): unknown {
  if (pem.includes('PRIVATE KEY'))
    throw new UnusableKey('the key is private: register its public half, and replace it');
  try {
    return createPublicKey(pem).export({ format: 'jwk' });
  } catch {
    throw new UnusableKey('the text is not a public key in PEM');
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
