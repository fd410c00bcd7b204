/** Slots of a Redis Cluster. */
export const SLOTS = 16_384;

const POLYNOMIAL = 0x1021;
/** CRC-16 of each byte (XMODEM). */
const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ POLYNOMIAL : crc << 1;
  return crc;
});

/** The slot of a key or a topic: that of its hash tag if it has one (Redis Cluster specification, "Hash tags"). */
export function hashSlot(key: string): number {
  const tag = hashTag(key);
  let crc = 0;
  for (let at = 0; at < tag.length; at++) {
    const code = tag.charCodeAt(at);
    if (code > 0x7f) return slotOfBytes(Buffer.from(tag));
    crc = next(crc, code);
  }
  return crc % SLOTS;
}

/** What stands in the first pair of braces, unless that is nothing; else the key as a whole. */
export function hashTag(key: string): string {
  const open = key.indexOf('{');
  const close = open === -1 ? -1 : key.indexOf('}', open + 1);
  return close <= open + 1 ? key : key.slice(open + 1, close);
}

function slotOfBytes(bytes: Buffer): number {
  let crc = 0;
  for (const byte of bytes) crc = next(crc, byte);
  return crc % SLOTS;
}

function next(crc: number, byte: number): number {
  return ((crc << 8) & 0xffff) ^ (TABLE[(crc >> 8) ^ byte] ?? 0);
}
