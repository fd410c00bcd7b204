const VARINT = 0;
const BYTES = 2;

/** The message is damaged, or has a form that is left to the generated classes of protobuf. */
export class Unusual extends Error {}

/** Walks the fields of a message: call `next()`, then one method that reads. Views of the input, not copies. */
export class Fields {
  readonly #bytes: Buffer;
  readonly #end: number;
  #at: number;
  field = 0;
  type = 0;

  constructor(bytes: Buffer, from: number, to: number) {
    if (to > bytes.length) throw new Unusual();
    this.#bytes = bytes;
    this.#at = from;
    this.#end = to;
  }

  next(): boolean {
    if (this.#at >= this.#end) return false;
    const tag = Number(this.#varint());
    this.field = tag >>> 3;
    this.type = tag & 7;
    return true;
  }

  varint(): number | bigint {
    if (this.type !== VARINT) throw new Unusual();
    return this.#varint();
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
    throw new Unusual();
  }

  /** The content of a field: a view. */
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
    if (this.type === VARINT) this.varint();
    else this.#pass();
  }

  #byte(): number {
    if (this.#at >= this.#end) throw new Unusual();
    return this.#bytes[this.#at++] ?? 0;
  }

  #pass(): number {
    if (this.type !== BYTES) throw new Unusual();
    const length = Number(this.#varint());
    const start = this.#at;
    if (start + length > this.#end) throw new Unusual();
    this.#at = start + length;
    return start;
  }
}
