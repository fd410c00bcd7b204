/**
 * Schemas of HTTP inputs. Bodies use plain zod types where they suffice (`z.boolean()`, `z.enum()`, `z.int()`, objects);
 * these schemas parse strings of a URL, or refuse values that zod alone accepts.
 */
import { z } from 'zod';
import { canonicalId, ENTITY_ID } from '#libs/kernel/ids.ts';
import {
  BOOL_PARSING,
  BOOL_TYPE,
  type CustomIssueParams,
  DATETIME_TYPE,
  greaterThanEqual,
  INT_PARSING,
  INT_PARSING_SIZE,
  INT_TYPE,
  lessThanEqual,
  patternMismatch,
  type PydanticError,
  refuse,
  STRING_UNICODE,
  stringTooLong,
  stringTooShort,
  UUID_TYPE,
  valueError,
} from './pydantic-errors.ts';
import { timestampProblem, urlProblem, uuidProblem } from './formats.ts';
import { jsonLimitProblem, type JsonLimits } from './json-numbers.ts';

interface Described {
  readonly description?: string;
  readonly deprecated?: boolean;
}

/** Metadata for OpenAPI, without undefined members. */
function facts(known: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(known).filter(([, value]) => value !== undefined));
}

interface TextOptions extends Described {
  readonly min?: number;
  readonly max?: number;
  readonly pattern?: RegExp;
}

/** A string of well-formed Unicode; lengths in characters (code points), as pydantic counts them. */
export function text({ min, max, pattern, ...described }: TextOptions = {}): z.ZodType<string, string> {
  return z
    .string()
    .superRefine((value, context) => {
      if (!value.isWellFormed()) return refuse(context, STRING_UNICODE);
      const problem = textProblem(value, min, max, pattern);
      return problem && refuse(context, problem);
    })
    .meta(facts({ ...described, minLength: min, maxLength: max, pattern: pattern?.source }));
}

function textProblem(value: string, min = 0, max = Infinity, pattern?: RegExp) {
  // A string has at most as many characters as UTF-16 units, so most strings need no counting.
  const length = value.length > max || (min > 0 && value.length < min * 2) ? characters(value) : value.length;
  if (length < min) return stringTooShort(min);
  if (length > max) return stringTooLong(max);
  return pattern && !pattern.test(value) ? patternMismatch(pattern.source) : undefined;
}

function characters(value: string): number {
  let total = 0;
  for (const _ of value) total += 1;
  return total;
}

interface QueryIntegerOptions extends Described {
  readonly min?: number;
  readonly max?: number;
  readonly default?: number;
}

/**
 * An integer in a query string: digits with an optional minus (`5abc`, ` 5`, `5.0` and `1e3` are `int_parsing`). Two
 * values are `int_type`. Optional if it has a `default`.
 */
export function queryInteger(options: QueryIntegerOptions & { default: number }): z.ZodDefault<z.ZodType<number>>;
export function queryInteger(options?: QueryIntegerOptions): z.ZodType<number>;
export function queryInteger(options: QueryIntegerOptions = {}): z.ZodType<number> {
  const { min, max, default: fallback, ...described } = options;
  const schema = z.unknown().transform((value, context): number => {
    if (typeof value !== 'string') return refuse(context, INT_TYPE);
    if (!/^-?\d+$/.test(value)) return refuse(context, INT_PARSING);
    const parsed = Number(value);
    if (min !== undefined && parsed < min) return refuse(context, greaterThanEqual(min));
    if (max !== undefined && parsed > max) return refuse(context, lessThanEqual(max));
    return Number.isSafeInteger(parsed) ? parsed : refuse(context, INT_PARSING_SIZE);
  });
  const known = facts({ type: 'integer', ...described, minimum: min, maximum: max });
  return fallback === undefined ? schema.meta(known) : schema.default(fallback).meta(known);
}

/** Words that pydantic accepts as a boolean in a query string, in upper and lower case. */
const BOOLEANS = new Map<string, boolean>([
  ...['true', '1', 'yes', 'y', 'on', 't'].map((word) => [word, true] as const),
  ...['false', '0', 'no', 'n', 'off', 'f'].map((word) => [word, false] as const),
]);

function booleanOf(value: unknown, context: z.core.$RefinementCtx): boolean {
  if (typeof value !== 'string') return refuse(context, BOOL_TYPE);
  return BOOLEANS.get(value.toLowerCase()) ?? refuse(context, BOOL_PARSING);
}

export function queryBoolean(options: Described & { default: boolean }): z.ZodDefault<z.ZodType<boolean>>;
export function queryBoolean(options?: Described): z.ZodType<boolean>;
export function queryBoolean({
  default: fallback,
  ...described
}: Described & { default?: boolean } = {}): z.ZodType<boolean> {
  const schema = z.unknown().transform(booleanOf);
  const known = facts({ type: 'boolean', ...described });
  return fallback === undefined ? schema.meta(known) : schema.default(fallback).meta(known);
}

/** As {@link queryBoolean}; the word `null` is null. */
export function queryBooleanOrNull({
  default: fallback,
  ...described
}: Described & { default: boolean }): z.ZodDefault<z.ZodType<boolean | null>> {
  const schema = z
    .unknown()
    .transform((value, context): boolean | null => (value === 'null' ? null : booleanOf(value, context)));
  const known = { type: ['boolean', 'null'], ...described };
  return schema.default(fallback).meta(facts(known));
}

/** An optional string of a query. The contract shows such parameters as nullable, which a query cannot express. */
export const queryOption = (schema: z.ZodType<string, string>): z.ZodOptional<z.ZodType<string, string>> =>
  schema.optional().meta({ type: ['string', 'null'] });

/**
 * An id in a path, parsed to its canonical form; `isUuid: false` for ids that only look like UUIDs. An impossible one is
 * 404 without a look-up.
 */
export function idParam(description?: string, { isUuid = true } = {}): z.ZodType<string, string> {
  const notFound: CustomIssueParams = { notFound: true };
  return z
    .string()
    .refine((value) => ENTITY_ID.test(value), { params: notFound })
    .transform((value) => (isUuid ? canonicalId(value) : value))
    .meta(facts({ description }));
}

/** A string of a format. `type` is the error for other types; `problemOf` validates the string, `read` parses it. */
function formatted<T>(
  type: PydanticError,
  problemOf: (value: string) => PydanticError | undefined,
  read: (value: string) => T,
  known: object,
): z.ZodType<T> {
  return z
    .unknown()
    .transform((value, context): T => {
      if (typeof value !== 'string') return refuse(context, type);
      const problem = problemOf(value);
      return problem ? refuse(context, problem) : read(value);
    })
    .meta(facts({ type: 'string', ...known }));
}

const toUtc = (value: string): string => new Date(value).toISOString();

/** An id that must be a UUID by the contract, else 422 (`uuid_parsing`). Parsed to its canonical form. */
export const uuid = (described: Described = {}): z.ZodType<string> =>
  formatted(UUID_TYPE, uuidProblem, canonicalId, { format: 'uuid', ...described });

/** {@link ENTITY_ID} without a comma, which ends an expression in the tags of Go's generated types. */
const DESCRIBED_ID = { pattern: '^[A-Za-z0-9_-]+$', maxLength: 64 };

/** An id that a client defines, stored as given: 422 (`string_pattern_mismatch`) if it is impossible. */
export const givenId = (described: Described = {}): z.ZodType<string, string> =>
  text({ pattern: ENTITY_ID, ...described }).meta(facts({ type: 'string', ...DESCRIBED_ID, ...described }));

/** An entity's id in a body or query, parsed to its canonical form. Errors as for {@link givenId}. */
export const idReference = (described: Described = {}): z.ZodType<string, string> =>
  givenId(described)
    .transform(canonicalId)
    .meta(facts({ type: 'string', ...DESCRIBED_ID, ...described }));

/** An entity's id as a filter of a list, parsed to its canonical form; an impossible one finds nothing. */
export const idFilter = (described: Described = {}): z.ZodType<string, string> =>
  text({ max: 256, ...described })
    .transform(canonicalId)
    .meta(facts({ type: 'string', maxLength: 256, ...described }));

/**
 * An http or https URL of at most 2,083 characters; not normalized. The contract has strings where Parley needs URLs,
 * so an invalid one is a `value_error`.
 */
export const httpUrl = (described: Described = {}): z.ZodType<string, string> =>
  text({ max: 2083, ...described }).superRefine((value, context) => {
    const problem = urlProblem(value);
    if (problem !== undefined) refuse(context, valueError(problem));
  });

/** RFC 3339 with an offset; parsed to UTC with milliseconds (`2026-01-31T12:00:00.000Z`). */
export const timestamp = (described: Described = {}): z.ZodType<string> =>
  formatted(DATETIME_TYPE, timestampProblem, toUtc, { format: 'date-time', ...described });

/** A time that Parley shows. */
export const shownTime = (): z.ZodString => z.string().meta({ format: 'date-time' });

/** A point in history, `as_of`: a sequence (digits only), or an RFC 3339 time. */
export type PointInHistory = { readonly sequence: number } | { readonly at: string };

const SEQUENCE = /^\d{1,15}$/;
const NUMBER = /^-?\d+(\.\d+)?$/;

/** Validates a number as a sequence, anything else as a time. */
function pointProblem(value: string): PydanticError | undefined {
  if (SEQUENCE.test(value)) return undefined;
  if (!NUMBER.test(value)) return orSequence(timestampProblem(value));
  if (value.includes('.')) return INT_PARSING;
  return value.startsWith('-') ? greaterThanEqual(0) : INT_PARSING_SIZE;
}

/** Mentions a sequence as an alternative in the error for a value that is not a time. */
function orSequence(problem: PydanticError | undefined): PydanticError | undefined {
  return (
    problem && { ...problem, msg: problem.msg.replace('a valid datetime or date', 'a sequence or a valid datetime') }
  );
}

export const queryPointInHistory = (described: Described = {}): z.ZodType<PointInHistory> =>
  formatted<PointInHistory>(
    DATETIME_TYPE,
    pointProblem,
    (value) => (SEQUENCE.test(value) ? { sequence: Number(value) } : { at: toUtc(value) }),
    described,
  );

const META_LIMITS: JsonLimits = { depth: 32, nodes: 1000, bytes: 64 * 1024 };

const within =
  (limits: JsonLimits) =>
  (value: object, context: z.core.$RefinementCtx): void => {
    const problem = jsonLimitProblem(value, limits);
    if (problem) refuse(context, problem);
  };

/** A free map of JSON values (`meta_data`, `data`, …): at most 32 levels, 1,000 nodes, 64 KiB. */
export function jsonMap(
  described: Described = {},
  limits: JsonLimits = META_LIMITS,
): z.ZodType<Record<string, unknown>, Record<string, unknown>> {
  return z
    .record(z.string(), z.unknown())
    .superRefine(within(limits))
    .meta(facts({ ...described, additionalProperties: true }));
}

/** A map of strings to strings (`user_metadata`, `agent_metadata`), with the limits of {@link jsonMap}. */
export function stringMap(): z.ZodType<Record<string, string>, Record<string, string>> {
  return z.record(z.string(), text()).superRefine(within(META_LIMITS));
}

const ONE_EMOJI = /^\p{RGI_Emoji}$/v;

/** Characters that are text without a variation selector, which a skin tone replaces. */
const TEXT_BY_DEFAULT = /(?!\p{Emoji_Presentation})\p{Emoji}(?!\p{Emoji_Modifier})/gu;

/**
 * Exactly one emoji of Unicode's recommended set, parsed to its fully-qualified form: keyboards send variation selectors
 * everywhere, nowhere, or in some places.
 */
export function singleEmoji(described: Described = {}): z.ZodType<string, string> {
  return z
    .string()
    .transform((value) => value.replaceAll(/[\uFE0E\uFE0F]/g, '').replaceAll(TEXT_BY_DEFAULT, '$&\uFE0F'))
    .refine((value) => ONE_EMOJI.test(value), { error: 'exactly one emoji is expected' })
    .meta(facts({ type: 'string', ...described }));
}
