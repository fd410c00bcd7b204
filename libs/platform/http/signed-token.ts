import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';

const MAC_BYTES = 16;

/**
 * Opaque tokens that callers return: cursors and positions. The payload is not secret, but cannot be forged: it is
 * signed together with a context (purpose, organization, filter) that is not part of the token, so a token of another
 * context does not open.
 */
export class TokenSigner {
  /** Not as text, which each token would decode again. */
  readonly #secret: KeyObject;

  /** @param secret the same in every process that serves the same callers; at least 16 bytes */
  constructor(secret: string) {
    const bytes = Buffer.from(secret);
    if (bytes.length < 16) throw new RangeError('the signing secret needs at least 16 bytes');
    this.#secret = createSecretKey(bytes);
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
    const head = JSON.stringify(context);
    const hmac = createHmac('sha256', this.#secret)
      .update(`${Buffer.byteLength(head)}:${head}`)
      .update(payload);
    return hmac.digest().subarray(0, MAC_BYTES);
  }
}

/**
 * The same text for equal JSON values: members sorted by name, no white space. For hashes and signatures, never for
 * storage. Ignores members that are `undefined`.
 */
export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  let text = '';
  // One text that grows: the arrays of entries that sorting and joining make take twice as long.
  if (Array.isArray(value)) {
    for (const item of value) text += `${text === '' ? '' : ','}${canonicalJson(item)}`;
    return `[${text}]`;
  }
  for (const name of Object.keys(value).sort()) {
    const member: unknown = Reflect.get(value, name);
    if (member !== undefined) text += `${text === '' ? '' : ','}${JSON.stringify(name)}:${canonicalJson(member)}`;
  }
  return `{${text}}`;
}
