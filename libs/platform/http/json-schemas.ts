/** zod schemas as JSON Schemas, for the OpenAPI and the AsyncAPI document. */
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
