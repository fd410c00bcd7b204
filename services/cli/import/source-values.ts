/**
 * Splits a file into JSON values with bounded memory: one value a line, the elements of one JSON array, or
 * pretty-printed values one after the other. Only brackets and strings are recognised; parsing finds other faults.
 */
export interface SourceValue {
  /** Line of its start, from 1. */
  readonly line: number;
  /** Number of the element of an array, from 1. */
  readonly item?: number;
  /** Null for a value that is too long, or is not UTF-8; `problem` says which. */
  readonly text: string | null;
  readonly problem: string | null;
  /** Offset of the end of this value in the file, in bytes. */
  readonly end: number;
}

type Layout = 'lines' | 'array' | 'values';

const MAX_BYTES = 16 * 1024 * 1024;
const NEWLINE = 0x0a;
const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN = new Set([0x5b, 0x7b]);
const CLOSE = new Set([0x5d, 0x7d]);

/** The beginning of the file shows its layout. */
const HEAD_BYTES = 4_096;

/** Values may be empty, as blank lines are. */
export async function* readValues(chunks: AsyncIterable<Buffer>): AsyncGenerator<SourceValue> {
  let splitter: ValueSplitter | null = null;
  let head: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    if (splitter !== null) yield* splitter.push(chunk);
    else if ((head = Buffer.concat([head, chunk])).length >= HEAD_BYTES) {
      splitter = new ValueSplitter(layoutOf(head));
      yield* splitter.push(head);
    }
  }
  if (splitter === null) {
    splitter = new ValueSplitter(layoutOf(head));
    yield* splitter.push(head);
  }
  yield* splitter.end();
}

function layoutOf(head: Buffer): Layout {
  const text = head
    .toString()
    .replace(/^\uFEFF/, '')
    .trimStart();
  if (text.startsWith('[')) return 'array';
  return /^\{[^\S\n]*\n/.test(text) ? 'values' : 'lines';
}

class ValueSplitter {
  readonly #layout: Layout;
  /** Depth at which the values are. */
  readonly #base: number;
  #depth = 0;
  #inString = false;
  #escaped = false;
  #parts: Buffer[] = [];
  #held = 0;
  #line = 1;
  #startLine: number | null = null;
  #items = 0;
  #offset = 0;
  #ended = false;

  constructor(layout: Layout) {
    this.#layout = layout;
    this.#base = layout === 'array' ? 1 : 0;
  }

  *push(chunk: Buffer): Generator<SourceValue> {
    let from = 0;
    for (let at = 0; at < chunk.length; at += 1) {
      const code = chunk[at] ?? 0;
      if (this.#startLine === null && code > 0x20 && !this.#isBeforeValue(code)) this.#startLine = this.#line;
      const ends = this.#step(code);
      if (code === NEWLINE) this.#line += 1;
      if (ends === null) continue;
      this.#hold(chunk.subarray(from, ends === 'after' ? at + 1 : at));
      from = at + 1;
      yield* this.#take(this.#offset + at + 1);
    }
    this.#hold(chunk.subarray(from));
    this.#offset += chunk.length;
  }

  *end(): Generator<SourceValue> {
    const end = this.#offset;
    if (this.#layout !== 'array') yield* this.#take(end);
    else if (this.#ended) yield* this.#take(end, 'text after the end of the list');
    else if (this.#startLine !== null) yield* this.#take(end, 'the file ends inside of this element');
    else yield { line: this.#line, text: null, problem: 'the file ends before its list', end };
  }

  #isBeforeValue(code: number): boolean {
    return this.#layout === 'array' && !this.#ended && (this.#depth === 0 || code === COMMA || code === 0x5d);
  }

  /** Whether a value ends before or after this byte. */
  #step(code: number): 'before' | 'after' | null {
    if (this.#layout === 'lines') return code === NEWLINE ? 'before' : null;
    if (this.#inString) {
      if (this.#escaped) this.#escaped = false;
      else if (code === BACKSLASH) this.#escaped = true;
      else if (code === QUOTE) this.#inString = false;
      return null;
    }
    if (code === QUOTE) this.#inString = true;
    else if (OPEN.has(code)) {
      this.#depth += 1;
      // The bracket of the array belongs to no element.
      if (this.#depth === this.#base && !this.#ended) return 'before';
    } else if (CLOSE.has(code)) {
      this.#depth = Math.max(0, this.#depth - 1);
      if (this.#ended) return null;
      if (this.#layout === 'values') return this.#depth === 0 ? 'after' : null;
      if (this.#depth > 0) return null;
      this.#ended = true;
      return 'before';
    } else if (code === COMMA && this.#base === 1 && this.#depth === 1 && !this.#ended) return 'before';
    return null;
  }

  #hold(bytes: Buffer): void {
    this.#held += bytes.length;
    // A value that is too long is counted but not kept.
    if (this.#held <= MAX_BYTES) this.#parts.push(bytes);
    else this.#parts = [];
  }

  *#take(end: number, problem: string | null = null): Generator<SourceValue> {
    const [parts, held, line] = [this.#parts, this.#held, this.#startLine];
    this.#parts = [];
    this.#held = 0;
    this.#startLine = null;
    if (line === null) return;
    const item = this.#layout === 'array' ? { item: (this.#items += 1) } : {};
    if (problem !== null) yield { line, ...item, text: null, problem, end };
    else yield { line, ...item, end, ...decoded(parts, held) };
  }
}

function decoded(parts: readonly Buffer[], held: number): Pick<SourceValue, 'text' | 'problem'> {
  if (held > MAX_BYTES) return { text: null, problem: `longer than ${MAX_BYTES / 1024 / 1024} MiB` };
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(parts)).trim(), problem: null };
  } catch {
    return { text: null, problem: 'not UTF-8' };
  }
}
