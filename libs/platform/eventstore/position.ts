import type { GlobalPosition } from '#libs/kernel/event.ts';

const TEXT = /^(0|[1-9]\d{0,19})\/(0|[1-9]\d{0,19})$/;
const MAX_OFFSET = 2n ** 64n - 1n;

/** A position as text (`commit/prepare`, decimal), for checkpoints. {@link decodePosition} is its inverse. */
export function encodePosition(position: GlobalPosition): string {
  return `${position.commit}/${position.prepare}`;
}

/** @throws RangeError for a text that {@link encodePosition} does not return */
export function decodePosition(text: string): GlobalPosition {
  const [, commit, prepare] = TEXT.exec(text) ?? [];
  if (commit === undefined || prepare === undefined) throw new RangeError(`not a position: ${JSON.stringify(text)}`);
  const position = { commit: BigInt(commit), prepare: BigInt(prepare) };
  if (position.commit > MAX_OFFSET || position.prepare > MAX_OFFSET) throw new RangeError(`not a position: ${text}`);
  return position;
}

/** Negative if `a` is before `b` in the log, 0 if they are equal, else positive. */
export function comparePositions(a: GlobalPosition, b: GlobalPosition): number {
  if (a.commit !== b.commit) return a.commit < b.commit ? -1 : 1;
  if (a.prepare !== b.prepare) return a.prepare < b.prepare ? -1 : 1;
  return 0;
}
