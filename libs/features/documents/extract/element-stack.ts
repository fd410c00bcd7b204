import { BLOCK, IMPLIED_ENDS, VOID, flagsOf } from './html-elements.ts';

/** Deeper elements are read as if they ended at once. */
const MAX_DEPTH = 256;

interface OpenElement {
  readonly name: string;
  readonly flags: number;
  readonly leave: (() => void) | null;
}

/** Cells bound what end tags inside of them may end. */
const CELLS = new Set(['td', 'th', 'caption', 'table']);
const TABLE_PARTS = new Set(['table', 'tbody', 'thead', 'tfoot', 'tr', 'td', 'th', 'caption']);

/**
 * The open elements of a page, with HTML's rules about omitted end tags as far as they matter for text. Time is linear
 * in the number of tags.
 */
export class ElementStack {
  readonly #open: OpenElement[] = [];
  readonly #counts = new Map<string, number>();
  /** Open elements beyond MAX_DEPTH. */
  #ignored = 0;

  /** @param enter returns what to do at the element's end */
  open(name: string, isEmpty: boolean, enter: (flags: number) => (() => void) | null): void {
    const flags = flagsOf(name);
    this.#endImplied(name, flags);
    const leave = enter(flags);
    if (isEmpty || (flags & VOID) !== 0) return leave?.();
    if (this.#open.length >= MAX_DEPTH) {
      this.#ignored += 1;
      return leave?.();
    }
    this.#open.push({ name, flags, leave });
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }

  close(name: string): void {
    if (this.#ignored > 0) {
      this.#ignored -= 1;
      return;
    }
    if (!this.#counts.get(name)) return;
    const isBlock = (flagsOf(name) & BLOCK) !== 0;
    for (let at = this.#open.length - 1; at >= 0; at -= 1) {
      const element = this.#open[at]!;
      if (element.name === name) return this.#endDownTo(at);
      // Misnested inline elements end with their block.
      if (!isBlock && (element.flags & BLOCK) !== 0) return;
      if (CELLS.has(element.name) && !TABLE_PARTS.has(name)) return;
    }
  }

  closeAll(): void {
    this.#endDownTo(0);
  }

  #endImplied(name: string, flags: number): void {
    if ((flags & BLOCK) !== 0 && this.#counts.get('p')) {
      for (let at = this.#open.length - 1; at >= 0; at -= 1) {
        const element = this.#open[at]!;
        if (element.name === 'p') return this.#endDownTo(at);
        if ((element.flags & BLOCK) !== 0) break;
      }
    }
    const implied = IMPLIED_ENDS.get(name);
    if (implied === undefined) return;
    let down = -1;
    for (let at = this.#open.length - 1; at >= 0; at -= 1) {
      const element = this.#open[at]!;
      if (implied.ends.has(element.name)) down = at;
      if (down !== -1 && !implied.all) break;
      if (implied.within.has(element.name)) break;
    }
    if (down !== -1) this.#endDownTo(down);
  }

  #endDownTo(depth: number): void {
    while (this.#open.length > depth) {
      const element = this.#open.pop()!;
      this.#counts.set(element.name, this.#counts.get(element.name)! - 1);
      element.leave?.();
    }
  }
}
