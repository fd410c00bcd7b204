/**
 * Maps zod's issues to pydantic's errors. An issue contains what was expected; the actual value, and whether there was
 * one, is read from the input.
 */
import type { z } from 'zod';
import {
  BOOL_PARSING,
  BOOL_TYPE,
  count,
  type CustomIssueParams,
  FINITE_NUMBER,
  FLOAT_PARSING,
  greaterThanEqual,
  INT_PARSING,
  INT_PARSING_SIZE,
  INT_TYPE,
  lessThanEqual,
  patternMismatch,
  type PydanticError,
  STRING_TYPE,
  stringTooLong,
  stringTooShort,
  type ValidationError,
  valueError,
} from './pydantic-errors.ts';
import {
  definition,
  discriminatorOf,
  isContainer,
  isInteger,
  type IssueLocation,
  locate,
  unionLabel,
  unwrapped,
} from './schema-path.ts';

/** The parts of a request by their names in `loc`; and `frame` for websockets. */
export type InputPart = 'path' | 'query' | 'header' | 'body' | 'frame';

/** Errors of a schema, or 404 for an impossible id in the path. */
export type Refusal = { readonly notFound: true } | { readonly notFound: false; readonly errors: ValidationError[] };

/** @param data the input before `schema` parsed it */
export function mapIssues(
  part: InputPart,
  schema: z.core.$ZodType,
  data: unknown,
  issues: readonly z.core.$ZodIssue[],
): Refusal {
  if (issues.some((issue) => issue.code === 'custom' && (issue.params as CustomIssueParams | undefined)?.notFound)) {
    return { notFound: true };
  }
  const errors = new Map<string, ValidationError>();
  for (const error of issues.flatMap((issue) => errorsOf(schema, data, issue))) {
    // pydantic stops at the first error of a value, zod does not: only the first counts.
    const key = JSON.stringify(error.loc);
    if (!errors.has(key)) errors.set(key, { ...error, loc: [part, ...error.loc], input: inputOf(part, error) });
  }
  return { notFound: false, errors: [...errors.values()] };
}

/** Outside of bodies and frames, FastAPI reports null instead of the object that lacks the member. */
function inputOf(part: InputPart, error: ValidationError): unknown {
  return error.type === 'missing' && part !== 'body' && part !== 'frame' ? null : (error.input ?? null);
}

function errorsOf(schema: z.core.$ZodType, data: unknown, issue: z.core.$ZodIssue): ValidationError[] {
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => {
        const { loc, value } = locate(schema, data, [...issue.path, key]);
        return { type: 'extra_forbidden', loc, msg: 'Extra inputs are not permitted', input: value };
      });
    case 'invalid_union':
      return issue.discriminator === undefined
        ? plainUnionErrors(schema, data, issue)
        : [tagError(locate(schema, data, issue.path.slice(0, -1)), issue.discriminator)];
    case 'invalid_key': {
      const { loc } = locate(schema, data, issue.path);
      const key = String(issue.path.at(-1));
      return issue.issues.slice(0, 1).map((inner) => {
        const location: IssueLocation = {
          loc: [...loc, '[key]'],
          schema: undefined,
          value: key,
          present: true,
          parent: undefined,
        };
        return at(location, problemOf(location, inner));
      });
    }
    default: {
      const location = locate(schema, data, issue.path);
      if (!location.present) return [missing(location)];
      return [at(location, problemOf(location, issue))];
    }
  }
}

function at(location: IssueLocation, problem: PydanticError): ValidationError {
  const { type, msg, ctx } = problem;
  return { type, loc: location.loc, msg, input: location.value, ...(ctx && { ctx }) };
}

function missing({ loc, parent }: IssueLocation): ValidationError {
  return { type: 'missing', loc, msg: 'Field required', input: parent };
}

/** No member matches: pydantic lists the errors of every member under the member's name. */
function plainUnionErrors(
  schema: z.core.$ZodType,
  data: unknown,
  issue: Extract<z.core.$ZodIssue, { code: 'invalid_union' }>,
): ValidationError[] {
  const location = locate(schema, data, issue.path);
  if (!location.present) return [missing(location)];
  const def = location.schema && definition(location.schema);
  if (def?.type !== 'union') return [at(location, valueError('no member of the union fits'))];
  return def.options.flatMap((option, index) =>
    (issue.errors[index] ?? []).flatMap((inner) =>
      errorsOf(option, location.value, inner).map((error) => ({
        ...error,
        loc: [...location.loc, unionLabel(option), ...error.loc],
      })),
    ),
  );
}

function tagError(location: IssueLocation, discriminator: string): ValidationError {
  const quoted = `'${discriminator}'`;
  if (!location.present) return missing(location);
  const tag = isContainer(location.value) ? Reflect.get(location.value, discriminator) : undefined;
  if (tag === undefined) {
    const msg = `Unable to extract tag using discriminator ${quoted}`;
    return at(location, { type: 'union_tag_not_found', msg, ctx: { discriminator: quoted } });
  }
  const expected = tagsOf(location.schema, discriminator).map(quote).join(', ');
  const shown = isContainer(tag) ? JSON.stringify(tag) : tag === null ? 'None' : String(tag);
  const msg = `Input tag '${shown}' found using ${quoted} does not match any of the expected tags: ${expected}`;
  return at(location, {
    type: 'union_tag_invalid',
    msg,
    ctx: { discriminator: quoted, tag: shown, expected_tags: expected },
  });
}

function tagsOf(schema: z.core.$ZodType | undefined, discriminator: string): unknown[] {
  const def = schema && definition(schema);
  if (def?.type !== 'union' || discriminatorOf(def) === undefined) return [];
  return def.options.flatMap((option) => {
    const inner = unwrapped(option);
    const shape = inner && definition(inner);
    const tag = shape?.type === 'object' ? unwrapped(shape.shape[discriminator]) : undefined;
    return [...(tag?._zod.values ?? [])];
  });
}

const quote = (value: unknown): string => (typeof value === 'string' ? `'${value}'` : String(value));

/** `'a', 'b' or 'c'` */
function alternatives(values: readonly unknown[]): string {
  const quoted = values.map(quote);
  const last = quoted.pop() ?? '';
  return quoted.length === 0 ? last : `${quoted.join(', ')} or ${last}`;
}

function problemOf(location: IssueLocation, issue: z.core.$ZodIssue): PydanticError {
  switch (issue.code) {
    case 'invalid_type':
      return typeProblem(location, issue.expected);
    case 'invalid_value': {
      const expected = alternatives(issue.values);
      const type = location.schema && definition(location.schema).type === 'literal' ? 'literal_error' : 'enum';
      return { type, msg: `Input should be ${expected}`, ctx: { expected } };
    }
    case 'too_small':
      return tooSmall(location, issue);
    case 'too_big':
      return tooBig(location, issue);
    case 'invalid_format':
      if (issue.format !== 'regex') return valueError(issue.message);
      return patternMismatch((issue.pattern ?? '').replace(/^\/(.*)\/[a-z]*$/s, '$1'));
    case 'not_multiple_of': {
      const { divisor } = issue;
      return { type: 'multiple_of', msg: `Input should be a multiple of ${divisor}`, ctx: { multiple_of: divisor } };
    }
    case 'custom':
      return (issue.params as CustomIssueParams | undefined)?.pydantic ?? valueError(issue.message);
    default:
      return valueError(issue.message);
  }
}

const BY_EXPECTED: Readonly<Record<string, PydanticError>> = {
  string: STRING_TYPE,
  number: { type: 'float_type', msg: 'Input should be a valid number' },
  int: INT_TYPE,
  boolean: BOOL_TYPE,
  array: { type: 'list_type', msg: 'Input should be a valid list' },
  tuple: { type: 'tuple_type', msg: 'Input should be a valid tuple' },
  record: { type: 'dict_type', msg: 'Input should be a valid dictionary' },
  object: {
    type: 'model_attributes_type',
    msg: 'Input should be a valid dictionary or object to extract fields from',
  },
  null: { type: 'none_required', msg: 'Input should be None' },
};

/**
 * Errors for strings where another type is expected. FastAPI converts strings that have the form of the type, and
 * Parley refuses these with the type's own error, so that a number never is a string by mistake.
 */
const BY_TEXT: Readonly<Record<string, { readonly form: RegExp; readonly error: PydanticError }>> = {
  int: { form: /^\s*[+-]?\d+(_\d+)*(\.0*)?\s*$/, error: INT_PARSING },
  number: { form: /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i, error: FLOAT_PARSING },
  boolean: { form: /^(true|false|1|0|yes|no|y|n|on|off|t|f)$/i, error: BOOL_PARSING },
};

function typeProblem({ schema, value }: IssueLocation, expected: string): PydanticError {
  if (typeof value === 'number' && (expected === 'number' || expected === 'int')) {
    if (!Number.isFinite(value)) return FINITE_NUMBER;
    return { type: 'int_from_float', msg: 'Input should be a valid integer, got a number with a fractional part' };
  }
  const kind = expected === 'number' && isInteger(schema) ? 'int' : expected;
  if (typeof value === 'string') {
    const parsing = BY_TEXT[kind];
    if (parsing && !parsing.form.test(value)) return parsing.error;
  }
  return BY_EXPECTED[kind] ?? valueError(`expected ${expected}`);
}

type Bound<Code> = Extract<z.core.$ZodIssue, { code: Code }>;

function tooSmall({ value }: IssueLocation, { origin, minimum, inclusive }: Bound<'too_small'>): PydanticError {
  const limit = Number(minimum);
  if (origin === 'string') return stringTooShort(limit);
  if (origin === 'array') {
    const actual_length = Array.isArray(value) ? value.length : 0;
    const msg = `List should have at least ${count(limit, 'item')} after validation, not ${actual_length}`;
    return { type: 'too_short', msg, ctx: { field_type: 'List', min_length: limit, actual_length } };
  }
  if (inclusive) return greaterThanEqual(limit);
  return { type: 'greater_than', msg: `Input should be greater than ${limit}`, ctx: { gt: limit } };
}

function tooBig({ value }: IssueLocation, { origin, maximum, inclusive }: Bound<'too_big'>): PydanticError {
  const limit = Number(maximum);
  if (origin === 'string') return stringTooLong(limit);
  if (origin === 'array') {
    const actual_length = Array.isArray(value) ? value.length : 0;
    const msg = `List should have at most ${count(limit, 'item')} after validation, not ${actual_length}`;
    return { type: 'too_long', msg, ctx: { field_type: 'List', max_length: limit, actual_length } };
  }
  // The bound of a double, not of the schema.
  if (origin === 'int' && limit === Number.MAX_SAFE_INTEGER) return INT_PARSING_SIZE;
  if (inclusive) return lessThanEqual(limit);
  return { type: 'less_than', msg: `Input should be less than ${limit}`, ctx: { lt: limit } };
}
