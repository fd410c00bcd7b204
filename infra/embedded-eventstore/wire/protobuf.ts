// A minimal protobuf reader and writer for the frequent messages (proposed and recorded events). The generated classes
// decode every field into objects; this reader returns slices of the input.

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

/** Walks the fields of one message. Call `next()`, then one read method or `skip()`. */
export class FieldReader {
  field = 0;
  wireType = 0;
  #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Reads the next tag; false at the end of the message. */
  next(): boolean {
    if (this.#at >= this.#bytes.length) return false;
    const tag = this.varint();
    this.field = Math.floor(tag / 8);
    this.wireType = tag % 8;
    return true;
  }

  /** An unsigned integer; exact up to 2^53, rounded above. */
  varint(): number {
    let result = 0;
    let factor = 1;
    for (;;) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) throw new RangeError('protobuf message ends inside a number');
      this.#at++;
      result += (byte & 0x7f) * factor;
      if (byte < 0x80) return result;
      factor *= 128;
    }
  }

  /** A view on the bytes of a bytes, string or message field; not a copy. */
  bytes(): Buffer {
    const start = this.#passField();
    return this.#bytes.subarray(start, this.#at);
  }

  string(): string {
    const start = this.#passField();
    return this.#bytes.toString('utf8', start, this.#at);
  }

  /** Moves to the end of a length-delimited field; returns its start. */
  #passField(): number {
    const length = this.varint();
    const start = this.#at;
    if (start + length > this.#bytes.length) throw new RangeError('protobuf message ends inside a field');
    this.#at = start + length;
    return start;
  }

  skip(): void {
    if (this.wireType === VARINT) this.varint();
    else if (this.wireType === BYTES) this.bytes();
    else if (this.wireType === FIXED64) this.#at += 8;
    else if (this.wireType === FIXED32) this.#at += 4;
    else throw new RangeError(`protobuf wire type ${this.wireType} is not supported`);
  }
}

/** The string in field `field` of a small message; empty when it is absent. */
export function nestedString(bytes: Buffer, field: number): string {
  const reader = new FieldReader(bytes);
  let value = '';
  while (reader.next()) {
    if (reader.field === field) value = reader.string();
    else reader.skip();
  }
  return value;
}

/** The entry of a map of strings: its key is field 1, its value field 2. */
export function mapEntryOf(bytes: Buffer): { readonly key: string; readonly value: string } {
  return { key: nestedString(bytes, 1), value: nestedString(bytes, 2) };
}

/** Length of `value` as a varint, for integers up to 2^53. */
export function varintLength(value: number): number {
  let length = 1;
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) length++;
  return length;
}

/** Length of a length-delimited field with a number below 16: tag, length, content. */
export function bytesFieldLength(contentLength: number): number {
  return 1 + varintLength(contentLength) + contentLength;
}

/** Writes into a buffer of the exact size. Field numbers below 16 only (one-byte tags). */
export class FieldWriter {
  at = 0;
  readonly buffer: Buffer;

  constructor(buffer: Buffer) {
    this.buffer = buffer;
  }

  #varint(value: number): void {
    let rest = value;
    while (rest >= 128) {
      this.buffer[this.at++] = (rest % 128) + 128;
      rest = Math.floor(rest / 128);
    }
    this.buffer[this.at++] = rest;
  }

  varintField(field: number, value: number): void {
    this.buffer[this.at++] = field * 8 + VARINT;
    this.#varint(value);
  }

  /** The number 2^63 - 1, which a JavaScript number cannot hold. */
  maxInt64Field(field: number): void {
    this.buffer[this.at++] = field * 8 + VARINT;
    this.buffer.fill(0xff, this.at, this.at + 8);
    this.buffer[this.at + 8] = 0x7f;
    this.at += 9;
  }

  /** Writes tag and length of a field; the caller writes its `length` bytes next. */
  startField(field: number, length: number): void {
    this.buffer[this.at++] = field * 8 + BYTES;
    this.#varint(length);
  }

  bytesField(field: number, value: Uint8Array): void {
    this.startField(field, value.length);
    this.buffer.set(value, this.at);
    this.at += value.length;
  }

  stringField(field: number, value: string, byteLength: number): void {
    this.startField(field, byteLength);
    this.at += this.buffer.write(value, this.at, 'utf8');
  }
}
