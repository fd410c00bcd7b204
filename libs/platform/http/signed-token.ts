import { createHmac, timingSafeEqual } from 'node:crypto';

const MAC_BYTES = 16;

/**
 * Opaque tokens that callers return: cursors and positions. The payload is not secret, but cannot be forged: it is
 * signed together with a context (purpose, organization, filter) that is not part of the token, so a token of another
 * context does not open.
 */
export class TokenSigner {
  readonly #secret: string;

  /** @param secret the same in every process that serves the same callers; at least 16 bytes */
  constructor(secret: string) {
    if (Buffer.byteLength(secret) < 16) throw new RangeError('the signing secret needs at least 16 bytes');
    this.#secret = secret;
  }

  seal(context: readonly string[], payload: unknown): string {
    const bytes = Buffer.from(JSON.stringify(payload));
    return Buffer.concat([this.#mac(context, bytes), bytes]).toString('base64url');
  }

  /** The payload, or `undefined` if the token was not created by `seal` with the same context. */
  open(context: readonly string[], token: string): unknown {
    if (!/^[A-Za-z0-9_-]{23,2048}$/.test(token)) return undefined;
    const bytes = Buffer.from(token, 'base64url');
    const payload = bytes.subarray(MAC_BYTES);
    if (!timingSafeEqual(bytes.subarray(0, MAC_BYTES), this.#mac(context, payload))) return undefined;
    return JSON.parse(payload.toString());
  }

  #mac(context: readonly string[], payload: Uint8Array): Buffer {
    // With the length of the context in the message, no other split of the same bytes verifies.
    const head = Buffer.from(JSON.stringify(context));
    const hmac = createHmac('sha256', this.#secret).update(`${head.length}:`).update(head).update(payload);
    return hmac.digest().subarray(0, MAC_BYTES);
  }
}

/**
 * The same text for equal JSON values: members sorted by name, no white space. For hashes and signatures, never for
 * storage. Ignores members that are `undefined`.
 */
export function canonicalJson(value: unknown): string {
  if (value === undefined) return 'null';
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`);
  return `{${members.join(',')}}`;
}
