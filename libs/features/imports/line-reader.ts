/** Lines of a file of any size: never more than one of them is held. */
import { createReadStream } from 'node:fs';

export interface SourceLine {
  /** From 1. */
  readonly number: number;
  /** Null for a line that is too long, or no UTF-8. */
  readonly text: string | null;
  readonly problem: string | null;
  /** Bytes from the beginning of the file to the end of this line. */
  readonly end: number;
}

const MAX_LINE_BYTES = 16 * 1024 * 1024;
const NEWLINE = 0x0a;

/** @param from a place where a line begins, and its number */
export async function* readLines(
  path: string,
  from: { readonly offset: number; readonly number: number },
): AsyncGenerator<SourceLine> {
  let parts: Buffer[] = [];
  let held = 0;
  let { offset, number } = from;
  let end = offset;
  for await (const chunk of createReadStream(path, { start: offset, highWaterMark: 256 * 1024 })) {
    let rest: Buffer = chunk;
    for (let at = rest.indexOf(NEWLINE); at >= 0; at = rest.indexOf(NEWLINE)) {
      end += at + 1;
      yield lineOf([...parts, rest.subarray(0, at)], held + at, { number, end });
      number += 1;
      offset = end;
      parts = [];
      held = 0;
      rest = rest.subarray(at + 1);
    }
    held += rest.length;
    end += rest.length;
    // What is too long is counted, not kept.
    if (held <= MAX_LINE_BYTES) parts.push(rest);
    else parts = [];
  }
  if (held > 0) yield lineOf(parts, held, { number, end });
}

function lineOf(
  parts: readonly Buffer[],
  length: number,
  place: { readonly number: number; readonly end: number },
): SourceLine {
  if (length > MAX_LINE_BYTES) {
    return { ...place, text: null, problem: `longer than ${MAX_LINE_BYTES / 1024 / 1024} MiB` };
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(parts));
    return { ...place, text: text.trim(), problem: null };
  } catch {
    return { ...place, text: null, problem: 'not UTF-8' };
  }
}
