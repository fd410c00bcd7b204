import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { MIMEType } from 'node:util';
import { HttpError, MAX_ERRORS, ValidationFailure } from './errors.ts';
import type { InputPart } from './validation/issue-mapper.ts';
import { locateRawNumbers, numberProblem, scanJson } from './validation/json-numbers.ts';
import { syntaxFaultOf } from './validation/json-syntax.ts';
import type { ValidationError } from './validation/pydantic-errors.ts';

/** More than any schema of the API needs, and far less than recursive code (serializers, schemas) can handle. */
const MAX_DEPTH = 100;

/**
 * Parses the body of a request, or another part of the input; `undefined` if it is empty.
 * @throws ValidationFailure 422 for bytes that are not UTF-8, malformed JSON, more than 100 levels, names that reach
 *   an object's prototype, and numbers that a double cannot represent
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

/** An escape may be part of any name. */
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

/** @throws HttpError 415 for a body in another encoding or charset than plain UTF-8 */
export function requirePlainJson(headers: IncomingHttpHeaders): void {
  refuseCompression(headers);
  const type = headers['content-type'] ?? '';
  const charset = type.includes(';') ? new MIMEType(type).params.get('charset') : null;
  if (charset !== null && charset.toLowerCase() !== 'utf-8') {
    throw unsupported('The charset of a body must be utf-8');
  }
}

/** @throws HttpError 415 */
export function refuseCompression(headers: IncomingHttpHeaders): void {
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw unsupported('A body must not be compressed (Content-Encoding)', { 'accept-encoding': 'identity' });
  }
}

function unsupported(detail: string, headers?: Record<string, string>): HttpError {
  return new HttpError(415, 'unsupported_media_type', detail, headers);
}
