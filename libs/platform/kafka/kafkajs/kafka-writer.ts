const INITIAL_BYTES = 64 * 1024;
/** UTF-8 needs at most so many bytes for each UTF-16 unit. */
const BYTES_OF_UNIT = 3;
/** Of 32 bits, 7 in each byte. */
const MAX_VARINT_BYTES = 5;
/** Texts up to this length have a length of one byte before them, and are copied faster without a call to native code. */
const SHORT = 63;

/** Writes the primitive types of Kafka's protocol to one buffer, which grows. */
export class KafkaWriter {
  #bytes = Buffer.allocUnsafe(INITIAL_BYTES);
  #at = 0;

  /** Number of bytes so far. */
  get length(): number {
    return this.#at;
  }

  /** The bytes that were written, without a copy. */
  get written(): Buffer {
    return this.#bytes.subarray(0, this.#at);
  }

  int8(value: number): this {
    this.#reserve(1);
    this.#at = this.#bytes.writeInt8(value, this.#at);
    return this;
  }

  int16(value: number): this {
    this.#reserve(2);
    this.#at = this.#bytes.writeInt16BE(value, this.#at);
    return this;
  }

  int32(value: number): this {
    this.#reserve(4);
    this.#at = this.#bytes.writeInt32BE(value, this.#at);
    return this;
  }

  int64(value: number): this {
    this.#reserve(8);
    this.#at = this.#bytes.writeBigInt64BE(BigInt(value), this.#at);
    return this;
  }

  /** Overwrites four bytes that were written before, at offset `at`. */
  uint32At(at: number, value: number): void {
    this.#bytes.writeUInt32BE(value, at);
  }

  /** A text of at most 32 KiB, after its length in two bytes. */
  string(text: string): this {
    this.int16(Buffer.byteLength(text));
    this.#text(text);
    return this;
  }

  varint(value: number): this {
    this.#reserve(MAX_VARINT_BYTES);
    let rest = ((value << 1) ^ (value >> 31)) >>> 0;
    for (; rest > 0x7f; rest >>>= 7) this.#bytes[this.#at++] = (rest & 0x7f) | 0x80;
    this.#bytes[this.#at++] = rest;
    return this;
  }

  /** Bytes, or a text in UTF-8, after their length as a varint; null has the length -1. */
  varbytes(value: Buffer | string | null): this {
    if (value === null) return this.varint(-1);
    if (typeof value === 'string') {
      if (value.length <= SHORT && this.#shortAscii(value)) return this;
      this.varint(Buffer.byteLength(value));
      this.#text(value);
      return this;
    }
    this.varint(value.length);
    this.#reserve(value.length);
    this.#at += value.copy(this.#bytes, this.#at);
    return this;
  }

  /** Leaves room for a length as a varint. @returns what `endLength` needs */
  startLength(): number {
    this.#reserve(MAX_VARINT_BYTES);
    const start = this.#at;
    this.#at += MAX_VARINT_BYTES;
    return start;
  }

  /** Writes the length of all that follows `startLength`, and closes the gap before it. */
  endLength(start: number): void {
    const from = start + MAX_VARINT_BYTES;
    const end = this.#at;
    this.#at = start;
    this.varint(end - from);
    this.#bytes.copyWithin(this.#at, from, end);
    this.#at += end - from;
  }

  #text(text: string): void {
    this.#reserve(text.length * BYTES_OF_UNIT);
    this.#at += this.#bytes.write(text, this.#at);
  }

  /** @returns false, and writes nothing, if the text has other characters */
  #shortAscii(text: string): boolean {
    this.#reserve(SHORT + 1);
    const { length } = text;
    const start = this.#at + 1;
    for (let index = 0; index < length; index++) {
      const unit = text.charCodeAt(index);
      if (unit > 0x7f) return false;
      this.#bytes[start + index] = unit;
    }
    this.#bytes[this.#at] = length << 1;
    this.#at = start + length;
    return true;
  }

  #reserve(count: number): void {
    const needed = this.#at + count;
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(needed, 2 * this.#bytes.length));
    this.#bytes.copy(grown, 0, 0, this.#at);
    this.#bytes = grown;
  }
}
