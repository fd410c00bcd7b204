import { isUtf8 } from 'node:buffer';
import { MAX_ERRORS, ValidationFailure } from './errors.ts';
import type { InputPart } from './validation/issue-mapper.ts';
import { locateRawNumbers, numberProblem, scanJson } from './validation/json-numbers.ts';
import { syntaxFaultOf } from './validation/json-syntax.ts';
import type { ValidationError } from './validation/pydantic-errors.ts';

/** Beyond any shape of the API, and far below what recursive code (serialisers, schemas) survives. */
const MAX_DEPTH = 100;

/**
 * The body of a request, or another piece of input (`part`): parsed JSON, or `undefined` where it is empty.
 * @throws ValidationFailure 422 for bytes that are no UTF-8, malformed JSON, nesting beyond 100
 *   levels, names that reach an object's prototype, and numbers that a double does not carry back
 */
export function parseJsonBody(bytes: Buffer, part: InputPart = 'body'): unknown {
  if (bytes.length === 0) return undefined;
  if (!isUtf8(bytes)) throw jsonInvalid(part, { error: `The ${part} is not UTF-8`, position: 0 });
  const decoded = bytes.toString();
  const text = decoded.charCodeAt(0) === 0xfeff ? decoded.slice(1) : decoded;
  const { tooDeepAt, hasRawNumbers } = scanJson(text, MAX_DEPTH);
  if (tooDeepAt !== undefined) throw jsonInvalid(part, { error: 'Nesting is too deep', position: tooDeepAt });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw jsonInvalid(part, syntaxFaultOf(text));
  }
  if (SUSPICIOUS.test(text)) refusePrototypeNames(part, value);
  if (hasRawNumbers) throw numbersRefused(part, text);
  return value;
}

function jsonInvalid(part: InputPart, { error, position }: { error: string; position: number }): ValidationFailure {
  return new ValidationFailure([
    { type: 'json_invalid', loc: [part, position], msg: 'JSON decode error', input: {}, ctx: { error } },
  ]);
}

function numbersRefused(part: InputPart, text: string): ValidationFailure {
  return new ValidationFailure(
    locateRawNumbers(text, MAX_ERRORS).map(({ loc, number }) => {
      const { type, msg, ctx } = numberProblem(number);
      return { type, loc: [part, ...loc], msg, input: number, ...(ctx && { ctx }) };
    }),
  );
}

/** Escapes can spell any name, so they are looked into as well. */
const SUSPICIOUS = /__proto__|prototype|\\u/;

function refusePrototypeNames(part: InputPart, root: unknown): void {
  const errors: ValidationError[] = [];
  const pending: { value: unknown; loc: (string | number)[] }[] = [{ value: root, loc: [part] }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, loc } = next;
    if (typeof value !== 'object' || value === null) continue;
    for (const name of Object.keys(value)) {
      const child: unknown = Reflect.get(value, name);
      const childLoc = [...loc, Array.isArray(value) ? Number(name) : name];
      const forbidden = name === '__proto__' || (name === 'prototype' && loc.at(-1) === 'constructor');
      if (forbidden) errors.push({ type: 'extra_forbidden', loc: childLoc, msg: FORBIDDEN, input: child });
      else pending.push({ value: child, loc: childLoc });
    }
  }
  if (errors.length > 0) throw new ValidationFailure(errors);
}

const FORBIDDEN = 'Extra inputs are not permitted';
