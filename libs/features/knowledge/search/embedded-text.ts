/** The text of a fact that becomes a vector. The version of the index covers it. */
import { hash } from 'node:crypto';

import { admitText } from '#libs/kernel/text.ts';

import { EDGE, type Kind } from './columns.ts';

/** Small models read about as much. */
const MAX_CHARACTERS = 2_000;
const KEY_BYTES = 16;

export interface FactText {
  readonly kind: Kind;
  readonly name: string | null;
  readonly summary?: string | null;
  readonly fact?: string;
  readonly passage: string | null;
}

/** A node by its name, summary and passage; an edge by its sentence. */
export function embeddedText({ kind, name, summary, fact, passage }: FactText): string {
  const parts = kind === EDGE ? [fact] : [name, summary, passage];
  return admitText(parts.filter((part) => typeof part === 'string' && part !== '').join('\n'), MAX_CHARACTERS);
}

/** Equal texts have one vector. */
export function textKey(text: string): Uint8Array {
  return hash('sha256', text, 'buffer').subarray(0, KEY_BYTES);
}
