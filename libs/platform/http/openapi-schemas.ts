import { z } from 'zod';

const reference = z.strictObject({ $ref: z.string().startsWith('#/components/schemas/') });
const references = z.array(reference).min(2);
const unionOfReferences = z.union([
  z.looseObject({ oneOf: references }).transform(({ oneOf }) => oneOf),
  z.looseObject({ anyOf: references }).transform(({ anyOf }) => anyOf),
]);
const tagged = z.looseObject({ properties: z.record(z.string(), z.unknown()), required: z.array(z.string()) });
const constant = z.looseObject({ const: z.string() });

/**
 * Adds OpenAPI's `discriminator` to every union whose named alternatives differ in a constant, because zod only
 * writes the constants.
 *
 * @returns a copy of `document`
 */
export function withDiscriminators(document: unknown, schemas: Readonly<Record<string, unknown>>): unknown {
  if (Array.isArray(document)) return document.map((one) => withDiscriminators(one, schemas));
  if (typeof document !== 'object' || document === null) return document;
  const copy = Object.fromEntries(
    Object.entries(document).map(([name, value]) => [name, withDiscriminators(value, schemas)]),
  );
  const union = unionOfReferences.safeParse(document);
  const discriminator = union.success ? discriminatorOf(union.data, schemas) : null;
  return discriminator === null ? copy : { ...copy, discriminator };
}

function discriminatorOf(
  alternatives: readonly { readonly $ref: string }[],
  schemas: Readonly<Record<string, unknown>>,
): object | null {
  const [first] = alternatives;
  for (const propertyName of Object.keys(first ? constantsOf(first.$ref, schemas) : {})) {
    const mapping: Record<string, string> = {};
    for (const { $ref } of alternatives) {
      const value = constantsOf($ref, schemas)[propertyName];
      if (value !== undefined) mapping[value] = $ref;
    }
    if (Object.keys(mapping).length === alternatives.length) return { propertyName, mapping };
  }
  return null;
}

/** Required properties of a schema with a constant value. */
function constantsOf(ref: string, schemas: Readonly<Record<string, unknown>>): Record<string, string> {
  const schema = tagged.safeParse(schemas[ref.slice('#/components/schemas/'.length)]);
  const constants: Record<string, string> = {};
  for (const name of schema.data?.required ?? []) {
    const property = constant.safeParse(schema.data?.properties[name]);
    if (property.success) constants[name] = property.data.const;
  }
  return constants;
}

/** Error answers in the OpenAPI document; errors.ts defines their format. */
const errorBody = (description: string) => ({
  type: 'object' as const,
  description,
  required: ['detail'],
  properties: {
    detail: { type: 'string' as const, description: 'For people' },
    code: { type: 'string' as const, description: 'For programs' },
    request_id: { type: 'string' as const },
  },
});

export const ERROR_SCHEMAS = {
  Error: errorBody('Every error but 422'),
  ValidationError: {
    type: 'object' as const,
    required: ['loc', 'msg', 'type'],
    properties: {
      loc: { type: 'array' as const, items: { anyOf: [{ type: 'string' as const }, { type: 'integer' as const }] } },
      msg: { type: 'string' as const },
      type: { type: 'string' as const },
      input: {},
      ctx: { type: 'object' as const },
    },
  },
  HTTPValidationError: {
    type: 'object' as const,
    properties: {
      detail: { type: 'array' as const, items: { $ref: '#/components/schemas/ValidationError' } },
    },
  },
};

const answer = (description: string, schema = 'Error', headers: string[] = []) => ({
  description,
  ...(headers.length > 0 && {
    headers: Object.fromEntries(headers.map((name) => [name, { schema: { type: 'string' as const } }])),
  }),
  content: { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` } } },
});

export const ERROR_RESPONSES: Readonly<Record<string, ReturnType<typeof answer>>> = {
  400: answer('The request cannot be read, or its head is ambiguous'),
  401: answer('No valid API key', 'Error', ['WWW-Authenticate']),
  403: answer('The API key lacks the scope'),
  404: answer("Absent, or another organization's"),
  409: answer('A conflict with another request'),
  412: answer('`If-Match` does not match'),
  413: answer('The body is too large'),
  415: answer('The body is not plain JSON in UTF-8'),
  422: answer('Validation Error', 'HTTPValidationError'),
  429: answer('Too many requests', 'Error', ['Retry-After']),
  431: answer('The headers are too large'),
  503: answer('A store is unavailable, or not caught up', 'Error', ['Retry-After']),
};

/** For operations that answer with an event stream. */
export const NO_STREAM_ACCEPTED = answer('`Accept` does not allow `text/event-stream`');
