import { redactedContent } from './secrets.ts';

/**
 * Text that Parley did not write: of models, tools, pages, files, imports, clients. Every way in passes it through here
 * before it is stored or sent on; quoting it for models is a matter of `platform/model`.
 */

/**
 * The text as Parley stores and sends it: well-formed Unicode, with U+FFFD in place of each lone surrogate, which UTF-8
 * cannot represent and other languages refuse to read. NUL and other control characters stay: REST takes them too.
 *
 * @param max length in UTF-16 units; a longer text is cut there, between two characters. The caller says so where its
 *   owner looks
 */
export function admitText(text: string, max = Infinity): string {
  if (text.length <= max) return text.toWellFormed();
  return text.slice(0, splitsPair(text, max) ? max - 1 : max).toWellFormed();
}

/**
 * The same for all texts and names of members in a JSON value, without the secrets of this process, which others may
 * echo. Returns the same value if nothing in it changes.
 */
export function admitJson<T>(value: T): T {
  // Nearly all values are admitted as they are: events on their way to the log are looked at without being copied.
  return isAdmitted(value) ? value : (admitted(value) as T);
}

function isAdmitted(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed() && redactedContent(value) === value;
  if (!isContainer(value)) return true;
  if (Array.isArray(value)) return value.every(isAdmitted);
  for (const name of Object.keys(value)) {
    if (!isAdmitted(name) || !isAdmitted((value as Record<string, unknown>)[name])) return false;
  }
  return true;
}

function admitted(value: unknown): unknown {
  if (typeof value === 'string') return redactedContent(admitText(value));
  if (!isContainer(value)) return value;
  if (Array.isArray(value)) return value.map(admitted);
  return Object.fromEntries(Object.entries(value).map((entry) => entry.map(admitted) as [string, unknown]));
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !JSON.isRawJSON(value);
}

/** Admits a text that arrives in parts, which may end in the middle of a character. */
export class TextStream {
  /** The first half of a character, whose second half may follow. */
  #half = '';

  /** The text that is certain to be admissible and was not returned before; may be empty. */
  add(part: string): string {
    const text = this.#half + part;
    const isHalf = isHighSurrogate(text.charCodeAt(text.length - 1));
    this.#half = isHalf ? text.slice(-1) : '';
    return admitText(isHalf ? text.slice(0, -1) : text);
  }

  /** The rest of the text. */
  end(): string {
    const rest = this.#half;
    this.#half = '';
    return admitText(rest);
  }
}

function splitsPair(text: string, at: number): boolean {
  return at > 0 && (text.codePointAt(at - 1) ?? 0) > 0xffff;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
