import type { z } from 'zod';

/**
 * An entry of a 422 answer: types and messages of pydantic 2, format of FastAPI's HTTPValidationError.
 * test/contract/pydantic compares both with recorded output.
 */
export interface ValidationError {
  readonly type: string;
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  /** The invalid value; for `missing`, the object that lacks it. Omitted if it is large. */
  readonly input?: unknown;
  readonly ctx?: Readonly<Record<string, unknown>>;
}

/** An error without its location. */
export interface PydanticError {
  readonly type: string;
  readonly msg: string;
  readonly ctx?: Readonly<Record<string, unknown>>;
}

/**
 * `params` of a zod issue by which a check passes its pydantic error to the mapper. An issue of a plain `refine` becomes
 * a `value_error` with its message.
 */
export interface CustomIssueParams {
  readonly pydantic?: PydanticError;
  /** The id is impossible: the request is 404. */
  readonly notFound?: true;
}

/** Reports `error` for the current value and returns zod's marker for "no value". */
export function refuse<T>(context: z.core.$RefinementCtx<T>, error: PydanticError): never {
  context.addIssue({ code: 'custom', message: error.msg, params: { pydantic: error } satisfies CustomIssueParams });
  // zod recognizes the marker by the reported issue; its type there is `never`, too.
  return undefined as never;
}

export const valueError = (message: string): PydanticError => ({
  type: 'value_error',
  msg: `Value error, ${message}`,
  ctx: { error: {} },
});

export const STRING_TYPE: PydanticError = { type: 'string_type', msg: 'Input should be a valid string' };
export const STRING_UNICODE: PydanticError = {
  type: 'string_unicode',
  msg: 'Input should be a valid string, unable to parse raw data as a unicode string',
};
export const UUID_TYPE: PydanticError = {
  type: 'uuid_type',
  msg: 'UUID input should be a string, bytes or UUID object',
};
export const DATETIME_TYPE: PydanticError = { type: 'datetime_type', msg: 'Input should be a valid datetime' };
export const INT_TYPE: PydanticError = { type: 'int_type', msg: 'Input should be a valid integer' };
export const INT_PARSING: PydanticError = {
  type: 'int_parsing',
  msg: 'Input should be a valid integer, unable to parse string as an integer',
};
export const INT_PARSING_SIZE: PydanticError = {
  type: 'int_parsing_size',
  msg: 'Unable to parse input string as an integer, exceeded maximum size',
};
export const BOOL_TYPE: PydanticError = { type: 'bool_type', msg: 'Input should be a valid boolean' };
export const BOOL_PARSING: PydanticError = {
  type: 'bool_parsing',
  msg: 'Input should be a valid boolean, unable to interpret input',
};

export const FLOAT_PARSING: PydanticError = {
  type: 'float_parsing',
  msg: 'Input should be a valid number, unable to parse string as a number',
};
export const FINITE_NUMBER: PydanticError = { type: 'finite_number', msg: 'Input should be a finite number' };

export const count = (n: number, unit: string): string => `${n} ${unit}${n === 1 ? '' : 's'}`;

export const stringTooShort = (min_length: number): PydanticError => ({
  type: 'string_too_short',
  msg: `String should have at least ${count(min_length, 'character')}`,
  ctx: { min_length },
});
export const stringTooLong = (max_length: number): PydanticError => ({
  type: 'string_too_long',
  msg: `String should have at most ${count(max_length, 'character')}`,
  ctx: { max_length },
});
export const patternMismatch = (pattern: string): PydanticError => ({
  type: 'string_pattern_mismatch',
  msg: `String should match pattern '${pattern}'`,
  ctx: { pattern },
});
export const greaterThanEqual = (ge: number): PydanticError => ({
  type: 'greater_than_equal',
  msg: `Input should be greater than or equal to ${ge}`,
  ctx: { ge },
});
export const lessThanEqual = (le: number): PydanticError => ({
  type: 'less_than_equal',
  msg: `Input should be less than or equal to ${le}`,
  ctx: { le },
});
