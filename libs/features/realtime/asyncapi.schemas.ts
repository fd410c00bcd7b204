/* zod schemas as JSON Schemas, in the components of an AsyncAPI document. */
import { z } from 'zod';

type JsonSchema = Record<string, unknown>;

export interface Reference {
  readonly $ref: string;
}

/** Whether clients send a schema's values or receive them; they ignore unknown members of what they receive. */
export type Direction = 'sent' | 'received';

const DEFINITION = '#/definitions/';
const COMPONENT = '#/components/schemas/';

export class ComponentSchemas {
  readonly #schemas = new Map<string, JsonSchema>();

  add(name: string, schema: z.ZodType, direction: Direction): Reference {
    const io = direction === 'sent' ? 'input' : 'output';
    const json = z.toJSONSchema(schema, { target: 'draft-7', io, unrepresentable: 'any' });
    const { definitions = {}, ...own } = z
      .looseObject({ definitions: z.record(z.string(), z.unknown()).optional() })
      .parse(json);
    // A schema with an id of its own is a definition: here it gets `name`.
    const self = typeof own['$ref'] === 'string' ? own['$ref'].slice(DEFINITION.length) : undefined;
    // A member with a default is optional when sent and required when received, so the two get different names.
    const named = (id: string): string => (id === self ? name : direction === 'sent' ? `${id}Sent` : id);
    for (const [id, definition] of Object.entries(definitions)) {
      this.#schemas.set(named(id), simplified(definition, named, direction));
    }
    if (self === undefined) this.#schemas.set(name, simplified(own, named, direction));
    return { $ref: COMPONENT + name };
  }

  /** By name, in alphabetical order. */
  all(): Record<string, JsonSchema> {
    return Object.fromEntries([...this.#schemas].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }
}

/** Removes keywords of zod's JSON Schema that mean nothing to readers, and points references to the components. */
function simplified(schema: unknown, named: (id: string) => string, direction: Direction): JsonSchema {
  const simple: unknown = JSON.parse(JSON.stringify(schema), (key, member: unknown) => {
    if ((key === 'id' || key === '$schema') && typeof member === 'string') return undefined;
    if (key === 'additionalProperties' && member === false && direction === 'received') return undefined;
    if ((key === 'maximum' || key === 'minimum') && Math.abs(Number(member)) === Number.MAX_SAFE_INTEGER)
      return undefined;
    if (key === '$ref' && typeof member === 'string' && member.startsWith(DEFINITION)) {
      return COMPONENT + named(member.slice(DEFINITION.length));
    }
    return member;
  });
  return z.record(z.string(), z.unknown()).parse(simple);
}
