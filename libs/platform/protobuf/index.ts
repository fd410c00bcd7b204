/*
 * Reads and writes messages of protobuf. Generated classes make an object of each field and decode texts character by character;
 * this module returns views of the input, and writes a whole message to one buffer.
 */

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

/** The message is damaged, or has a form that its reader does not expect. */
export class UnexpectedForm extends RangeError {
  override readonly name = 'UnexpectedForm';

  constructor(message = 'the protobuf message is damaged') {
    super(message);
  }
}

/**
 * Walks the fields of a message: call `next()`, then one method that reads. Returns views of the input, not copies.
 *
 * All methods throw UnexpectedForm.
 */
export class Fields {
  readonly #bytes: Buffer;
  readonly #end: number;
  #at: number;
  field = 0;
  #type = 0;

  constructor(bytes: Buffer, from = 0, to = bytes.length) {
    if (to > bytes.length) throw new UnexpectedForm();
    this.#bytes = bytes;
    this.#at = from;
    this.#end = to;
  }

  /** Reads the next tag; false at the end of the message. */
  next(): boolean {
    if (this.#at >= this.#end) return false;
    const tag = Number(this.#varint());
    // No field has the number 0, or one of more than 29 bits.
    if (tag < 8 || tag > 0xffffffff) throw new UnexpectedForm();
    this.field = tag >>> 3;
    this.#type = tag & 7;
    return true;
  }

  /** An unsigned integer of up to 64 bits. */
  varint(): number | bigint {
    if (this.#type !== VARINT) throw new UnexpectedForm();
    return this.#varint();
  }

  bytes(): Buffer {
    const start = this.#pass();
    return this.#bytes.subarray(start, this.#at);
  }

  text(): string {
    const start = this.#pass();
    return this.#bytes.toString('utf8', start, this.#at);
  }

  message(): Fields {
    const start = this.#pass();
    return new Fields(this.#bytes, start, this.#at);
  }

  skip(): void {
    if (this.#type === VARINT) this.#varint();
    else if (this.#type === FIXED64) this.#move(8);
    else if (this.#type === FIXED32) this.#move(4);
    else this.#pass();
  }

  /** Moves to the end of a field of bytes; returns its start. */
  #pass(): number {
    if (this.#type !== BYTES) throw new UnexpectedForm();
    const length = Number(this.#varint());
    const start = this.#at;
    this.#move(length);
    return start;
  }

  #move(length: number): void {
    this.#at += length;
    if (this.#at > this.#end) throw new UnexpectedForm();
  }

  #varint(): number | bigint {
    const start = this.#at;
    let value = 0;
    // Six bytes hold 42 bits, which is exact.
    for (let factor = 1; this.#at < start + 6; factor *= 128) {
      const byte = this.#byte();
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
    let large = BigInt(value);
    for (let shift = 42n; shift < 70n; shift += 7n) {
      const byte = this.#byte();
      large |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asUintN(64, large);
    }
    throw new UnexpectedForm();
  }

  #byte(): number {
    if (this.#at >= this.#end) throw new UnexpectedForm();
    return this.#bytes[this.#at++] ?? 0;
  }
}

/** The text in one field of a message; empty if there is none. @throws UnexpectedForm */
export function textIn(fields: Fields, field: number): string {
  let found = '';
  while (fields.next()) {
    if (fields.field === field) found = fields.text();
    else fields.skip();
  }
  return found;
}

/** An entry of a map of texts. @throws UnexpectedForm */
export function mapEntryIn(fields: Fields): { readonly key: string; readonly value: string } {
  let [key, value] = ['', ''];
  while (fields.next()) {
    if (fields.field === 1) key = fields.text();
    else if (fields.field === 2) value = fields.text();
    else fields.skip();
  }
  return { key, value };
}

/** A field to write. Its number is below 16, so its tag is one byte. */
export interface Field {
  readonly tag: number;
  /** Of the value, in bytes. */
  readonly length: number;
  readonly value: number | string | Uint8Array | readonly Field[];
}

/** @param value an integer from 0 to 2^53, which bit operations do not support */
export function number(field: number, value: number): Field {
  return { tag: field * 8 + VARINT, length: varintSize(value), value };
}

const MAX_INT64 = Buffer.from('ffffffffffffffff7f', 'hex');

/** The number 2^63 - 1, which a JavaScript number cannot hold. */
export function maxInt64(field: number): Field {
  return { tag: field * 8 + VARINT, length: MAX_INT64.length, value: MAX_INT64 };
}

export function text(field: number, value: string): Field {
  return { tag: field * 8 + BYTES, length: Buffer.byteLength(value), value };
}

export function bytes(field: number, value: Uint8Array): Field {
  return { tag: field * 8 + BYTES, length: value.length, value };
}

export function message(field: number, value: readonly Field[]): Field {
  return { tag: field * 8 + BYTES, length: lengthOf(value), value };
}

export function mapEntry(field: number, key: string, value: string): Field {
  return message(field, [text(1, key), text(2, value)]);
}

/** @param allocate `Buffer.allocUnsafeSlow` for memory that no other buffer shares */
export function encode(
  fields: readonly Field[],
  allocate: (size: number) => Buffer<ArrayBuffer> = Buffer.allocUnsafe,
): Buffer<ArrayBuffer> {
  const buffer = allocate(lengthOf(fields));
  writeFields(buffer, 0, fields);
  return buffer;
}

function lengthOf(fields: readonly Field[]): number {
  let length = 0;
  for (const { tag, length: own } of fields) length += 1 + own + (tag % 8 === BYTES ? varintSize(own) : 0);
  return length;
}

/** @returns where the next field starts */
function writeFields(buffer: Buffer, start: number, fields: readonly Field[]): number {
  let at = start;
  for (const field of fields) at = writeField(buffer, at, field);
  return at;
}

function writeField(buffer: Buffer, start: number, { tag, length, value }: Field): number {
  buffer[start] = tag;
  if (typeof value === 'number') return writeVarint(buffer, start + 1, value);
  const at = tag % 8 === BYTES ? writeVarint(buffer, start + 1, length) : start + 1;
  // Latin-1 is the faster encoder, and the same for texts of one byte a character.
  if (typeof value === 'string')
    return at + buffer.write(value, at, length, length === value.length ? 'latin1' : 'utf8');
  if (!(value instanceof Uint8Array)) return writeFields(buffer, at, value);
  buffer.set(value, at);
  return at + length;
}

function writeVarint(buffer: Buffer, start: number, value: number): number {
  let at = start;
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) buffer[at++] = (rest % 0x80) | 0x80;
  buffer[at++] = rest;
  return at;
}

function varintSize(value: number): number {
  let size = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) size++;
  return size;
}
