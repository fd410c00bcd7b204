/** zod schemas as JSON Schemas, and what else the OpenAPI and the AsyncAPI document have in common. */
import { z } from 'zod';

export type JsonSchema = Record<string, unknown>;

/** Whether clients send the values of a schema or receive them; they ignore unknown members of what they receive. */
export type Direction = 'sent' | 'received';

const DEFINITION = /^#\/(\$defs|definitions)\//;
const COMPONENT = '#/components/schemas/';

/** Collects the schemas that have an id, which become the components of a document. */
export class JsonSchemas {
  readonly #target: 'draft-2020-12' | 'draft-7';
  readonly #suffixOfSent: string;
  readonly #components = new Map<string, JsonSchema>();

  /**
   * @param suffixOfSent distinguishes the two forms of a schema: a member with a default is optional when sent and
   *   required when received
   */
  constructor(target: 'draft-2020-12' | 'draft-7', suffixOfSent: string) {
    this.#target = target;
    this.#suffixOfSent = suffixOfSent;
  }

  /** A schema with an id of its own becomes a component, and the result refers to it; `name` replaces the id. */
  of(schema: z.ZodType, direction: Direction, name?: string): JsonSchema {
    const json = z.toJSONSchema(schema, {
      target: this.#target,
      io: direction === 'sent' ? 'input' : 'output',
      unrepresentable: 'any',
      override: (made) => simplify(made, direction),
    });
    const { $schema: _, $defs: _defs, definitions: _definitions, ...own } = json;
    const self = own.$ref?.replace(DEFINITION, '');
    const definitions = (json.$defs ?? json.definitions ?? {}) as Record<string, object>;
    const named = (id: string): string => {
      if (id === self && name !== undefined) return name;
      // An enum has the same form in both directions.
      return id + (direction === 'sent' && !('enum' in (definitions[id] ?? {})) ? this.#suffixOfSent : '');
    };
    for (const [id, definition] of Object.entries(definitions)) {
      this.#components.set(named(id), referring(definition, named));
    }
    return referring(own, named);
  }

  /** As {@link of}, for a schema that becomes a component whether or not it has an id. */
  component(name: string, schema: z.ZodType, direction: Direction): { readonly $ref: string } {
    const json = this.of(schema, direction, name);
    if (!('$ref' in json)) this.#components.set(name, json);
    return { $ref: COMPONENT + name };
  }

  /** By name, in alphabetical order. */
  components(): Record<string, JsonSchema> {
    return Object.fromEntries([...this.#components].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }
}

/** Removes keywords that mean nothing to readers, and adds defaults and examples of parsed values, which zod leaves out. */
function simplify(
  { zodSchema, jsonSchema }: { zodSchema: z.core.$ZodTypes; jsonSchema: z.core.JSONSchema.BaseSchema },
  direction: Direction,
): void {
  delete jsonSchema['id'];
  if (jsonSchema.additionalProperties === false && direction === 'received') delete jsonSchema.additionalProperties;
  for (const limit of ['minimum', 'maximum'] as const) {
    if (Math.abs(Number(jsonSchema[limit])) === Number.MAX_SAFE_INTEGER) delete jsonSchema[limit];
  }
  if (JSON.stringify(jsonSchema.propertyNames) === '{"type":"string"}') delete jsonSchema.propertyNames;
  const { def } = zodSchema._zod;
  const { default: stated, examples } = z.globalRegistry.get(zodSchema) ?? {};
  const fallback = def.type === 'default' ? def.defaultValue : stated;
  if (fallback !== undefined) jsonSchema.default = fallback;
  if (Array.isArray(examples)) jsonSchema.examples = examples;
}

/** A copy that refers to the components instead of its own definitions. */
function referring(schema: object, named: (id: string) => string): JsonSchema {
  return z
    .record(z.string(), z.unknown())
    .parse(
      JSON.parse(JSON.stringify(schema), (key, value: unknown) =>
        key === '$ref' && typeof value === 'string' ? COMPONENT + named(value.replace(DEFINITION, '')) : value,
      ),
    );
}

const reference = z.strictObject({ $ref: z.string().startsWith('#/components/schemas/') });
const references = z.array(reference).min(2);
const unionOfReferences = z.union([
  z.looseObject({ oneOf: references }).transform(({ oneOf }) => oneOf),
  z.looseObject({ anyOf: references }).transform(({ anyOf }) => anyOf),
]);
const tagged = z.looseObject({ properties: z.record(z.string(), z.unknown()), required: z.array(z.string()) });
const constant = z.looseObject({ const: z.string() });

/**
 * Adds a `discriminator` to every union whose named alternatives differ in a constant, because zod only writes the
 * constants.
 *
 * @param form of OpenAPI, with the values, or of AsyncAPI: the `name` of the member
 * @returns a copy of `document`
 */
export function withDiscriminators(
  document: unknown,
  schemas: Readonly<Record<string, unknown>>,
  form: 'mapping' | 'name' = 'mapping',
): unknown {
  if (Array.isArray(document)) return document.map((one) => withDiscriminators(one, schemas, form));
  if (typeof document !== 'object' || document === null) return document;
  const copy = Object.fromEntries(
    Object.entries(document).map(([name, value]) => [name, withDiscriminators(value, schemas, form)]),
  );
  const union = unionOfReferences.safeParse(document);
  const discriminator = union.success ? discriminatorOf(union.data, schemas) : null;
  if (discriminator === null) return copy;
  return { ...copy, discriminator: form === 'name' ? discriminator.propertyName : discriminator };
}

function discriminatorOf(
  alternatives: readonly { readonly $ref: string }[],
  schemas: Readonly<Record<string, unknown>>,
): { readonly propertyName: string; readonly mapping: object } | null {
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

/** Adds titles to what is described in place: generators for AsyncAPI name its types by them, as in `ChannelSourceType`. */
export function withTitles(schemas: Readonly<Record<string, JsonSchema>>): Record<string, JsonSchema> {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, titled(schema, name)]));
}

const BECOMES_TYPE = ['const', 'enum', 'properties', 'anyOf', 'oneOf'];

function titled(schema: JsonSchema, path: string): JsonSchema {
  const made: JsonSchema = { ...schema };
  const { properties, items } = made;
  if (isSchema(properties)) {
    const named = Object.entries(properties).map(([name, member]) => [name, inPlace(member, path + pascalCase(name))]);
    made['properties'] = Object.fromEntries(named);
  }
  if (items !== undefined) made['items'] = inPlace(items, `${path}Item`);
  for (const union of ['anyOf', 'oneOf']) {
    const alternatives = made[union];
    if (!Array.isArray(alternatives)) continue;
    const others = alternatives.filter((one) => isSchema(one) && one['type'] !== 'null').length;
    made[union] = alternatives.map((one, at) => inPlace(one, others === 1 ? `${path}Value` : `${path}${at + 1}`));
  }
  return made;
}

function inPlace(schema: unknown, name: string): unknown {
  if (!isSchema(schema) || '$ref' in schema) return schema;
  const needsName = BECOMES_TYPE.some((keyword) => keyword in schema);
  return { ...(needsName && { title: name }), ...titled(schema, name) };
}

const isSchema = (value: unknown): value is JsonSchema => typeof value === 'object' && value !== null;

export function pascalCase(text: string): string {
  return text.replaceAll(/(?:^|[._])(\w)/g, (_all, letter: string) => letter.toUpperCase());
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

/** Error answers by name. Operations refer to them: written out, they were most of the document. */
export const NAMED_RESPONSES = {
  BadRequest: answer('The request cannot be read, or its head is ambiguous'),
  Unauthorized: answer('No valid API key', 'Error', ['WWW-Authenticate']),
  Forbidden: answer('The API key lacks the scope'),
  NotFound: answer("Absent, or another organization's"),
  NotAcceptable: answer('`Accept` does not allow `text/event-stream`'),
  Conflict: answer('A conflict with another request'),
  PreconditionFailed: answer('`If-Match` does not match'),
  ContentTooLarge: answer('The body is too large'),
  UnsupportedMediaType: answer('The body is not plain JSON in UTF-8'),
  UnprocessableContent: answer('Validation Error', 'HTTPValidationError'),
  TooManyRequests: answer('Too many requests', 'Error', ['Retry-After']),
  RequestHeaderFieldsTooLarge: answer('The headers are too large'),
  ServiceUnavailable: answer('A store is unavailable, or not caught up', 'Error', ['Retry-After']),
};

/** The error answers of every operation, by status. */
export const ERROR_RESPONSES: Readonly<Record<string, keyof typeof NAMED_RESPONSES>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  412: 'PreconditionFailed',
  413: 'ContentTooLarge',
  415: 'UnsupportedMediaType',
  422: 'UnprocessableContent',
  429: 'TooManyRequests',
  431: 'RequestHeaderFieldsTooLarge',
  503: 'ServiceUnavailable',
};
