import type { FastifyRequest, FastifySchemaCompiler } from 'fastify';
import type { z } from 'zod';
import { notFound, ValidationFailure, type HttpError } from '../errors.ts';
import { mapIssues, type InputPart, type Refusal } from './issue-mapper.ts';

/** A part of a request is invalid; the error handler adds the errors of the other parts. */
export class InputRefused extends Error {
  readonly part: InputPart;
  readonly refusal: Refusal;
  readonly statusCode = 422;

  constructor(part: InputPart, refusal: Refusal) {
    super('The input is invalid');
    this.part = part;
    this.refusal = refusal;
  }
}

/** Fastify's names of the parts and those in `loc`, in the order in which FastAPI lists their errors. */
const PARTS = [
  ['params', 'path'],
  ['querystring', 'query'],
  ['headers', 'header'],
  ['body', 'body'],
] as const;

/** Fastify validates the parts in this order and stops at the first invalid one. */
const CHECK_ORDER: readonly InputPart[] = ['path', 'body', 'query', 'header'];

export const validatorCompiler: FastifySchemaCompiler<z.core.$ZodType> = ({ schema, httpPart }) => {
  const part = PARTS.find(([name]) => name === httpPart)?.[1] ?? 'body';
  const parse = (schema as z.ZodType).safeParse;
  return (data: unknown) => {
    const result = parse(data);
    if (result.success) return { value: result.data };
    return { error: new InputRefused(part, mapIssues(part, schema, data, result.error.issues)) };
  };
};

/**
 * Validates input that does not belong to a route, with the same errors.
 * @throws ValidationFailure 422; HttpError 404 for an impossible id
 */
export function parseInput<T>(schema: z.ZodType<T>, data: unknown, part: InputPart = 'body'): T {
  const result = schema.safeParse(data);
  if (result.success) return result.data;
  const refusal = mapIssues(part, schema, data, result.error.issues);
  throw refusal.notFound ? notFound() : new ValidationFailure(refusal.errors);
}

/**
 * All errors of a request with an invalid part: FastAPI validates all parts and lists all errors, so this validates
 * the parts that Fastify did not reach, off the hot path.
 */
export function wholeRefusal(first: InputRefused, request: FastifyRequest): ValidationFailure | HttpError {
  const refusals = new Map<InputPart, Refusal>([[first.part, first.refusal]]);
  // Fastify passes a missing body to the schema as `null`, which is a value.
  if (request.body === undefined && first.part === 'body') refusals.set('body', NO_BODY);
  for (const [name, part] of PARTS) {
    if (CHECK_ORDER.indexOf(part) <= CHECK_ORDER.indexOf(first.part)) continue;
    const data = name === 'querystring' ? request.query : request[name];
    const outcome: unknown = request.getValidationFunction(name)?.(data);
    if (hasRefusal(outcome)) refusals.set(part, outcome.error.refusal);
  }
  const inOrder = PARTS.map(([, part]) => refusals.get(part)).filter((refusal) => refusal !== undefined);
  if (inOrder.some((refusal) => refusal.notFound)) return notFound();
  return new ValidationFailure(inOrder.flatMap((refusal) => (refusal.notFound ? [] : refusal.errors)));
}

const NO_BODY: Refusal = {
  notFound: false,
  errors: [{ type: 'missing', loc: ['body'], msg: 'Field required', input: null }],
};

function hasRefusal(outcome: unknown): outcome is { error: InputRefused } {
  return typeof outcome === 'object' && outcome !== null && 'error' in outcome && outcome.error instanceof InputRefused;
}
