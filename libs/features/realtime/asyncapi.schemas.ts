/* zod schemas as JSON Schemas in one place, named and referred to as an AsyncAPI document does. */
import { z } from 'zod';

type JsonSchema = Record<string, unknown>;

/** A schema in the document: a reference into its components. */
export interface Reference {
  readonly $ref: string;
}

/**
 * Collects the schemas of a document. Those that a client sends are shown as they are sent; those that it
 * gets, as it gets them, with members that it should pass over if it does not know them.
 */
export class ComponentSchemas {
  readonly #schemas = new Map<string, JsonSchema>();

  /** @param name what it is called in the document */
  add(name: string, schema: z.ZodType, direction: 'sent' | 'received'): Reference {
    const io = direction === 'sent' ? 'input' : 'output';
    const json = z.toJSONSchema(schema, { target: 'draft-7', io, unrepresentable: 'any' });
    const { definitions = {}, ...own } = z
      .looseObject({ definitions: z.record(z.string(), z.unknown()).optional() })
      .parse(json);
    // The schema itself may have a name of its own: here it has this one.
    const self = typeof own['$ref'] === 'string' ? own['$ref'].slice(DEFINITION.length) : undefined;
    // What has a default may be left out by who sends it: the two sides' shapes bear different names.
    const named = (id: string): string => (id === self ? name : direction === 'sent' ? `${id}Sent` : id);
    const tidy = (value: unknown): JsonSchema => asObject(tidied(value, named, direction));
    for (const [id, definition] of Object.entries(definitions)) this.#schemas.set(named(id), tidy(definition));
    if (self === undefined) this.#schemas.set(name, tidy(own));
    return { $ref: `#/components/schemas/${name}` };
  }

  /** By name, in alphabetical order. */
  all(): Record<string, JsonSchema> {
    return Object.fromEntries([...this.#schemas].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }
}

const DEFINITION = '#/definitions/';

/** Takes out what zod's JSON Schema says and nobody needs to read. */
function tidied(value: unknown, named: (id: string) => string, direction: 'sent' | 'received'): unknown {
  return JSON.parse(JSON.stringify(value), (key, member: unknown) => {
    if ((key === 'id' || key === '$schema') && typeof member === 'string') return undefined;
    if (key === 'additionalProperties' && member === false && direction === 'received') return undefined;
    if ((key === 'maximum' || key === 'minimum') && Math.abs(Number(member)) === Number.MAX_SAFE_INTEGER)
      return undefined;
    if (key === '$ref' && typeof member === 'string' && member.startsWith(DEFINITION)) {
      return `#/components/schemas/${named(member.slice(DEFINITION.length))}`;
    }
    return member;
  });
}

function asObject(value: unknown): JsonSchema {
  return z.record(z.string(), z.unknown()).parse(value);
}
