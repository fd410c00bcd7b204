import { BadInput } from './import.model.ts';

/** As in requests; code that walks over values recursively survives it. */
const MAX_DEPTH = 100;
/** About half a gigabyte of memory. The list of users of the largest workspaces has fewer. */
const MAX_VALUES = 8_000_000;

/**
 * Parses JSON of a source. Depth and number of values are checked before, because a small text can describe
 * values that take many times its size.
 *
 * @throws BadInput for malformed JSON, nesting beyond 100 levels, and more than 8 million values
 */
export function parseSourceJson(text: string): unknown {
  checkShape(text);
  try {
    return JSON.parse(text);
  } catch {
    throw new BadInput('not JSON');
  }
}

function checkShape(text: string): void {
  let depth = 0;
  let values = 1;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x22) inString = !inString;
    else if (inString) at += code === 0x5c ? 1 : 0;
    else if (code === 0x5b || code === 0x7b) {
      values += 1;
      depth += 1;
      if (depth > MAX_DEPTH) throw new BadInput(`nested deeper than ${MAX_DEPTH} levels`);
    } else if (code === 0x5d || code === 0x7d) depth -= 1;
    else if (code === 0x2c) values += 1;
  }
  if (values > MAX_VALUES) throw new BadInput(`more than ${MAX_VALUES / 1_000_000} million values`);
}
