import { admitText } from '#libs/kernel/text.ts';

/** Where text stands on a page, from what is read last to what is read first. */
export type Region = 0 | 1 | 2 | 3;
export const ASIDE_REGION = 0;
export const BODY_REGION = 1;
export const ARTICLE_REGION = 2;
export const MAIN_REGION = 3;

export interface Block {
  readonly kind: 'heading' | 'paragraph' | 'item' | 'code' | 'table';
  /** Of a heading; else 0. */
  readonly level: number;
  /** Markdown. */
  readonly text: string;
  /** Text without Markdown of blocks. */
  readonly plain: string;
  /** Characters of `plain` that are links. */
  readonly linked: number;
  readonly region: Region;
}

/** Characters; the rest of a longer text is left out. */
const MAX_TEXT = 5 * 1024 * 1024;

/** Joins blocks with a blank line, and items of a list without. */
export function joinBlocks(blocks: readonly Block[]): string {
  let text = '';
  let before: Block | null = null;
  for (const block of blocks) {
    if (before !== null) text += before.kind === 'item' && block.kind === 'item' ? '\n' : '\n\n';
    text += block.text;
    if (text.length > MAX_TEXT) return admitText(text, MAX_TEXT);
    before = block;
  }
  return text;
}
