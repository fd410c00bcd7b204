import { parseJson, scanJson } from '#libs/platform/http/index.ts';

import { BadInput } from './import.model.ts';

/** As in requests; code that walks over values recursively survives it. */
const MAX_DEPTH = 100;
/** About half a gigabyte of memory. The list of users of the largest workspaces has fewer. */
const MAX_VALUES = 8_000_000;

/**
 * Parses JSON of a source. Depth and number of values are checked before, because a small text can describe
 * values that take many times its size. Numbers that a double does not carry back are raw numbers (`parseJson`):
 * a map that has one is kept as its text, and refused where there is no place for text.
 *
 * @throws BadInput for malformed JSON, nesting beyond 100 levels, and more than 8 million values
 */
export function parseSourceJson(text: string): unknown {
  const scan = scanJson(text, MAX_DEPTH);
  if (scan.tooDeepAt !== undefined) throw new BadInput(`nested deeper than ${MAX_DEPTH} levels`);
  if (scan.values > MAX_VALUES) throw new BadInput(`more than ${MAX_VALUES / 1_000_000} million values`);
  try {
    return parseJson(text, scan);
  } catch {
    throw new BadInput('not JSON');
  }
}
