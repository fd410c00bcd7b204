import { STRING_UNICODE, valueError } from './custom-issue.ts';
import { numberProblem } from './json-numbers.ts';
import type { PydanticError } from './pydantic-errors.ts';

/** Bounds of a free JSON value. `depth` counts the outermost object as 1, `nodes` every value inside it. */
export interface JsonLimits {
  readonly depth: number;
  readonly nodes: number;
  /** Of the compact JSON text in UTF-8. */
  readonly bytes: number;
}

/**
 * What is wrong with a parsed JSON value, if anything. Walks without recursion and stops at the
 * first bound, so that its cost is bounded too. Also refuses what would not come back from storage
 * as it went in: raw numbers (see `parseJson`) and half surrogate pairs.
 */
export function jsonLimitProblem(root: object, { depth, nodes, bytes }: JsonLimits): PydanticError | undefined {
  const pending: { value: unknown; level: number }[] = [{ value: root, level: 1 }];
  let seen = 0;
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, level } = next;
    seen += 1;
    if (seen > nodes + 1) return valueError(`at most ${nodes} values are allowed`);
    if (typeof value === 'string' && !value.isWellFormed()) return STRING_UNICODE;
    if (typeof value !== 'object' || value === null) continue;
    if (JSON.isRawJSON(value)) return numberProblem(value);
    if (level > depth) return valueError(`at most ${depth} levels of nesting are allowed`);
    for (const name in value) {
      if (!Array.isArray(value) && !name.isWellFormed()) return STRING_UNICODE;
      pending.push({ value: Reflect.get(value, name), level: level + 1 });
      if (pending.length + seen > nodes + 1) return valueError(`at most ${nodes} values are allowed`);
    }
  }
  // Only now is it known to be shallow enough to be written out.
  if (Buffer.byteLength(JSON.stringify(root)) > bytes) return valueError(`at most ${bytes} bytes are allowed`);
  return undefined;
}
