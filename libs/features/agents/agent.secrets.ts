import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

import type { EntityId } from '#libs/kernel/ids.ts';

const ALGORITHM = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Seals what agents must keep secret, so that the log, its copies and its messages hold nothing that can be used. The key
 * follows from the secret of this Parley (`PARLEY_TOKEN_SECRET`); with another one, nothing sealed before can be opened.
 */
export class AgentSecrets {
  readonly #key: Buffer;

  constructor(tokenSecret: string) {
    this.#key = Buffer.from(hkdfSync('sha256', tokenSecret, '', 'parley secrets of agents', 32));
  }

  /** For one agent: it opens for no other one. Different each time. */
  seal(agentId: EntityId, text: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#key, nonce).setAAD(Buffer.from(agentId));
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url');
  }

  /** @returns null for what was not sealed with this key, for this agent */
  open(agentId: EntityId, sealed: string): string | null {
    const bytes = Buffer.from(sealed, 'base64url');
    if (bytes.length < NONCE_BYTES + TAG_BYTES) return null;
    try {
      const nonce = bytes.subarray(0, NONCE_BYTES);
      const tag = bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES);
      const decipher = createDecipheriv(ALGORITHM, this.#key, nonce).setAAD(Buffer.from(agentId)).setAuthTag(tag);
      const text = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
      return text.toString('utf8');
    } catch {
      return null;
    }
  }
}
