/** CRC-32C (Castagnoli), with its bits reversed. */
const POLYNOMIAL = 0x82f63b78;
const BYTES_AT_ONCE = 8;
/** For each byte: its checksum when 0 to 7 zero bytes follow it, in tables of 256. */
const TABLE = tableOf(BYTES_AT_ONCE);

/**
 * The checksum of Kafka's record batches, of `bytes[from..to)`. Eight bytes at a time, which takes a third of the time of a
 * loop over single bytes; zlib computes another polynomial.
 */
export function crc32c(bytes: Uint8Array, from: number, to: number): number {
  let crc = -1;
  let at = from;
  for (const last = to - BYTES_AT_ONCE; at <= last; at += BYTES_AT_ONCE) {
    const low = crc ^ (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24));
    crc =
      TABLE[0x700 | (low & 0xff)]! ^
      TABLE[0x600 | ((low >>> 8) & 0xff)]! ^
      TABLE[0x500 | ((low >>> 16) & 0xff)]! ^
      TABLE[0x400 | (low >>> 24)]! ^
      TABLE[0x300 | bytes[at + 4]!]! ^
      TABLE[0x200 | bytes[at + 5]!]! ^
      TABLE[0x100 | bytes[at + 6]!]! ^
      TABLE[bytes[at + 7]!]!;
  }
  for (; at < to; at++) crc = TABLE[(crc ^ bytes[at]!) & 0xff]! ^ (crc >>> 8);
  return (crc ^ -1) >>> 0;
}

function tableOf(rows: number): Int32Array {
  const table = new Int32Array(rows * 256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    table[byte] = crc;
  }
  for (let at = 256; at < table.length; at++) {
    const before = table[at - 256]!;
    table[at] = (before >>> 8) ^ table[before & 0xff]!;
  }
  return table;
}
