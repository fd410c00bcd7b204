/**
 * The form of an API key: `parley_live_`, 32 random bytes in base62 (43 characters), and the CRC-32
 * of what stands before it in base62 (6 characters). The checksum keeps typing errors and junk away
 * from every look-up; it proves nothing. Only the SHA-256 of a key is ever stored.
 */
import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

export const API_KEY_PREFIX = 'parley_live_';
const SECRET_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const KEY_LENGTH = API_KEY_PREFIX.length + SECRET_LENGTH + CHECKSUM_LENGTH;
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const FORM = new RegExp(`^${API_KEY_PREFIX}[0-9A-Za-z]{${SECRET_LENGTH + CHECKSUM_LENGTH}}$`);

/** @param random 32 bytes; given in tests only */
export function createApiKey(random: Uint8Array = randomBytes(32)): string {
  const body = API_KEY_PREFIX + base62(BigInt(`0x${Buffer.from(random).toString('hex')}`), SECRET_LENGTH);
  return body + checksumOf(body);
}

/** Whether a text can be a key at all: form and checksum. Costs no look-up. */
export function isWellFormedApiKey(key: string): boolean {
  if (key.length !== KEY_LENGTH || !FORM.test(key)) return false;
  const body = key.slice(0, -CHECKSUM_LENGTH);
  return key.slice(-CHECKSUM_LENGTH) === checksumOf(body);
}

/** SHA-256 of a key in hex (64 characters): what is stored and looked up. */
export function digestOf(key: string): string {
  return hash('sha256', key, 'hex');
}

function checksumOf(body: string): string {
  return base62(BigInt(crc32(body)), CHECKSUM_LENGTH);
}

/** Fixed width, most significant digit first. */
function base62(value: bigint, width: number): string {
  let digits = '';
  for (let rest = value; digits.length < width; rest /= 62n) digits = ALPHABET.charAt(Number(rest % 62n)) + digits;
  return digits;
}
