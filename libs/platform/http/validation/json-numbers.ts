/**
 * Numbers in JSON that a double cannot represent: JSON.parse reads 9007199254740993 as …992, 1e999 as Infinity and
 * 0.1000000000000000055 as 0.1, and JSON.stringify writes -0 as 0. They become raw numbers (`JSON.rawJSON`), which
 * JSON.stringify writes unchanged. See docs/decisions/0052 for why no library does this.
 */
import { FINITE_NUMBER, STRING_UNICODE, valueError, type PydanticError } from './pydantic-errors.ts';

/** The text of a number that a double cannot represent. */
export interface RawNumber {
  readonly rawJSON: string;
}

// ECMAScript's "JSON.parse source text access", which TypeScript does not declare yet.
declare global {
  interface JSON {
    parse(
      text: string,
      reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
    ): unknown;
    rawJSON(text: string): RawNumber;
    isRawJSON(value: unknown): value is RawNumber;
  }
}

const INEXACT_NUMBER = valueError(
  'the number cannot be represented exactly; where any value is allowed, send it as a string',
);

/** The error for a raw number in data that would be stored. */
export function numberProblem({ rawJSON }: RawNumber): PydanticError {
  return Number.isFinite(Number(rawJSON)) ? INEXACT_NUMBER : FINITE_NUMBER;
}

/**
 * Parses JSON; numbers that a double cannot represent become raw numbers.
 *
 * @throws SyntaxError
 */
export function parseJson(text: string, { hasRawNumbers } = scanJson(text)): unknown {
  if (!hasRawNumbers) return JSON.parse(text);
  return JSON.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined && !isKept(source) ? JSON.rawJSON(source) : value,
  );
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

interface JsonScan {
  /** Index at which the nesting exceeds `maxDepth`, where the scan ends. */
  readonly tooDeepAt: number | undefined;
  /** Upper bound of the number of values: empty lists and objects count twice. */
  readonly values: number;
  readonly hasRawNumbers: boolean;
}

/** Scans the tokens of a text that may be JSON, and skips its strings. */
export function scanJson(text: string, maxDepth = Infinity): JsonScan {
  let depth = 0;
  let values = 1;
  let hasRawNumbers = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      depth += 1;
      values += 1;
      if (depth > maxDepth) return { tooDeepAt: at, values, hasRawNumbers };
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth -= 1;
    else if (code === COMMA) values += 1;
    else if (code === MINUS || (code >= ZERO && code <= NINE)) {
      const end = endOfNumber(text, at);
      hasRawNumbers ||= mayBeInexact(text, at, end) && !isKept(text.slice(at, end));
      at = end - 1;
    }
  }
  return { tooDeepAt: undefined, values, hasRawNumbers };
}

interface LocatedNumber {
  readonly loc: readonly (string | number)[];
  readonly number: RawNumber;
}

/** An open list with the current index, or an open object with the bounds of the last name in the text. */
type Container = { index: number } | { name: readonly [start: number, end: number]; expectsName: boolean };

/** The first `limit` raw numbers in valid JSON. Much faster than a reviver on long lists. */
export function locateRawNumbers(text: string, limit: number): LocatedNumber[] {
  const found: LocatedNumber[] = [];
  const open: Container[] = [];
  for (let at = 0; at < text.length && found.length < limit; at += 1) {
    const code = text.charCodeAt(at);
    const container = open.at(-1);
    if (code === QUOTE) {
      const end = endOfString(text, at);
      if (container !== undefined && 'name' in container && container.expectsName) {
        container.name = [at, end + 1];
        container.expectsName = false;
      }
      at = end;
    } else if (code === OPEN_LIST) open.push({ index: 0 });
    else if (code === OPEN_OBJECT) open.push({ name: [0, 0], expectsName: true });
    else if (code === CLOSE_LIST || code === CLOSE_OBJECT) open.pop();
    else if (code === COMMA && container !== undefined) {
      if ('index' in container) container.index += 1;
      else container.expectsName = true;
    } else if (code === MINUS || (code >= ZERO && code <= NINE)) {
      const end = endOfNumber(text, at);
      const literal = text.slice(at, end);
      if (!isKept(literal)) found.push({ loc: open.map((one) => keyOf(text, one)), number: JSON.rawJSON(literal) });
      at = end - 1;
    }
  }
  return found;
}

function keyOf(text: string, container: Container): string | number {
  return 'index' in container ? container.index : String(JSON.parse(text.slice(...container.name)));
}

/** Index of the quote that ends the string at `start`; the end of the text if there is none. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return end;
  }
  return text.length;
}

function endOfNumber(text: string, start: number): number {
  let end = start + 1;
  for (; end < text.length; end += 1) {
    const code = text.charCodeAt(end);
    const isDigit = code >= ZERO && code <= NINE;
    // Numbers consist of digits, `+`, `-`, `.`, `E` and `e`.
    if (!isDigit && code !== 0x2e && code !== 0x65 && code !== 0x45 && code !== MINUS && code !== 0x2b) break;
  }
  return end;
}

/** A double represents any number of up to 15 digits without an exponent, except -0. */
function mayBeInexact(text: string, start: number, end: number): boolean {
  if (end - start > 15 || (text.charCodeAt(start) === MINUS && text.charCodeAt(start + 1) === ZERO)) return true;
  for (let at = start; at < end; at += 1) if ((text.charCodeAt(at) | 0x20) === 0x65) return true;
  return false;
}

/** Whether a number has the same decimal value after JSON.parse and JSON.stringify. */
export function isKept(literal: string): boolean {
  const value = Number(literal);
  if (!Number.isFinite(value) || Object.is(value, -0)) return false;
  const written = String(value);
  // The usual case of a long number: it was written from a double.
  return written === literal || decimalOf(literal) === decimalOf(written);
}

/** Significant digits and exponent of the absolute value. Takes linear time. */
function decimalOf(literal: string): string {
  const [, integer = '', fraction = '', exponent = '0'] =
    /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(literal) ?? [];
  const digits = integer + fraction;
  let start = 0;
  let end = digits.length;
  while (start < end && digits.charCodeAt(start) === ZERO) start += 1;
  while (start < end && digits.charCodeAt(end - 1) === ZERO) end -= 1;
  if (start === end) return '0';
  return `${digits.slice(start, end)}e${Number(exponent) - fraction.length + (digits.length - end)}`;
}

/** Bounds of arbitrary JSON. The outermost object has depth 1; `nodes` counts the values inside it. */
export interface JsonLimits {
  readonly depth: number;
  readonly nodes: number;
  /** Size of the compact JSON in UTF-8. */
  readonly bytes: number;
}

/**
 * Checks a parsed value against the limits. Has no recursion and stops at the first exceeded limit, which bounds its
 * cost. Also refuses values that storage would change: raw numbers (see `parseJson`) and lone surrogates.
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
  // The depth was checked, so JSON.stringify cannot overflow the stack.
  if (Buffer.byteLength(JSON.stringify(root)) > bytes) return valueError(`at most ${bytes} bytes are allowed`);
  return undefined;
}
