import { z } from 'zod';

import { isObject, type JsonObject } from '#libs/kernel/json.ts';

import { admitText } from '#libs/kernel/text.ts';

import type { ModelTool } from './model.ts';

const MAX_DEPTH = 12;
const MAX_NODES = 2_000;
const SAFE_PROPERTY = /^[a-zA-Z0-9_.-]{1,64}$/;

/** Types of JSON Schema, and names that tools use for them. A type that is none of them is left out. */
const TYPES: Readonly<Record<string, string>> = {
  object: 'object',
  dict: 'object',
  map: 'object',
  array: 'array',
  list: 'array',
  string: 'string',
  str: 'string',
  text: 'string',
  number: 'number',
  float: 'number',
  double: 'number',
  integer: 'integer',
  int: 'integer',
  boolean: 'boolean',
  bool: 'boolean',
};
/** Bounds that all strict endpoints take, for the types that they apply to. */
const BOUNDS: readonly (readonly [string, readonly string[]])[] = [
  ['minimum', ['number', 'integer']],
  ['maximum', ['number', 'integer']],
  ['minLength', ['string']],
  ['maxLength', ['string']],
  ['minItems', ['array']],
  ['maxItems', ['array']],
];
/** Keywords that some endpoints refuse: models read them in the description instead. */
const NOTES = ['format', 'pattern', 'default', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'];
const MAX_NOTE = 200;

const strictSchemas = new WeakMap<object, JsonObject | null>();

/**
 * The schema of a tool's arguments in the form that the strictest endpoints accept: an object with properties, types by
 * their names, references resolved, nothing but the keywords that all of them know. What a model needs of the others is
 * moved to descriptions. It describes at least the arguments of the given schema; the tool itself checks them.
 *
 * @returns null for a schema that cannot have this form: no object, or names of properties that endpoints refuse
 */
export function strictSchemaOf(input: ModelTool['input']): JsonObject | null {
  const key = 'jsonSchema' in input ? input.jsonSchema : input;
  const known = strictSchemas.get(key);
  if (known !== undefined) return known;
  const given = 'jsonSchema' in input ? input.jsonSchema : (z.toJSONSchema(input, { io: 'input' }) as JsonObject);
  let strict: JsonObject | null = null;
  try {
    strict = strictSchema(given);
  } catch (error) {
    if (!(error instanceof Unusable)) throw error;
  }
  strictSchemas.set(key, strict);
  return strict;
}

/** The schema cannot have the strict form. */
class Unusable extends Error {
  override readonly name = 'Unusable';
}

/** @throws Unusable */
function strictSchema(root: JsonObject): JsonObject {
  const converter = new Converter(root);
  const types = typesOf(root['type']);
  if (types.length > 0 && !types.includes('object')) throw new Unusable('not an object');
  const branches = ['anyOf', 'oneOf', 'allOf'].filter((name) => Array.isArray(root[name]));
  const own = converter.convert({ ...root, type: 'object', anyOf: undefined, oneOf: undefined, allOf: undefined }, 0);
  const parts = branches.flatMap((name) =>
    (root[name] as unknown[]).map((part) => ({ part: converter.convert(part, 1), isRequired: name === 'allOf' })),
  );
  const objects = parts.filter(({ part }) => isObject(part['properties']));
  const alternatives = objects.filter(({ isRequired }) => !isRequired).map(({ part }) => namesIn(part['required']));
  const required = [
    ...namesIn(own['required']),
    ...objects.flatMap(({ part, isRequired }) => (isRequired ? namesIn(part['required']) : [])),
    // Of alternatives, what all of them require.
    ...(alternatives[0] ?? []).filter((name) => alternatives.every((names) => names.includes(name))),
  ];
  const properties = Object.assign({}, own['properties'], ...objects.map(({ part }) => part['properties'])) as object;
  return {
    type: 'object',
    ...(typeof own['description'] === 'string' && { description: own['description'] }),
    properties,
    ...(required.length > 0 && { required: [...new Set(required)] }),
  };
}

class Converter {
  readonly #root: JsonObject;
  #nodes = 0;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  /** @throws Unusable */
  convert(given: unknown, depth: number, path: ReadonlySet<string> = new Set()): JsonObject {
    this.#nodes += 1;
    if (this.#nodes > MAX_NODES) throw new Unusable('too large');
    if (!isObject(given) || depth > MAX_DEPTH) return {};
    const reference = given['$ref'];
    if (typeof reference === 'string') {
      const { $ref: _resolved, ...more } = given;
      // A schema that contains itself: anything.
      const target = path.has(reference) ? undefined : this.#resolve(reference);
      return this.convert({ ...(isObject(target) ? target : {}), ...more }, depth + 1, new Set([...path, reference]));
    }
    const joined = Array.isArray(given['allOf']) ? this.#joined(given, given['allOf'] as unknown[], path) : given;
    const branches = this.#branchesOf(joined, depth, path);
    if (branches.length > 1) return { ...describedBy(joined['description']), anyOf: branches };
    const [only] = branches;
    if (only !== undefined) return { ...only, ...describedBy(joined['description'] ?? only['description']) };
    return this.#typed(joined, depth, path);
  }

  #resolve(reference: string): unknown {
    if (!reference.startsWith('#')) return undefined;
    let found: unknown = this.#root;
    for (const step of reference.split('/').slice(1)) {
      const name = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~');
      found = isObject(found) && Object.hasOwn(found, name) ? found[name] : undefined;
    }
    return found;
  }

  #joined(given: JsonObject, parts: readonly unknown[], path: ReadonlySet<string>): JsonObject {
    const { allOf: _joined, ...own } = given;
    return parts.reduce<JsonObject>((all, part) => {
      const reference = isObject(part) && typeof part['$ref'] === 'string' ? part['$ref'] : null;
      const target = reference === null || path.has(reference) ? part : this.#resolve(reference);
      if (!isObject(target)) return all;
      const properties = { ...(all['properties'] as object), ...(target['properties'] as object) };
      const required = [...namesIn(all['required']), ...namesIn(target['required'])];
      return { ...target, ...all, properties, required };
    }, own);
  }

  /** The alternatives of a schema, without null: a property that may be null is one that may be absent. */
  #branchesOf(given: JsonObject, depth: number, path: ReadonlySet<string>): JsonObject[] {
    const listed = [given['anyOf'], given['oneOf']].find(Array.isArray) as unknown[] | undefined;
    const types = typesOf(given['type']);
    const parts = listed ?? (types.length > 1 ? types.map((type) => ({ ...given, type, description: undefined })) : []);
    return parts
      .filter((part) => !(isObject(part) && part['type'] === 'null'))
      .map((part) => this.convert(part, depth + 1, path));
  }

  #typed(given: JsonObject, depth: number, path: ReadonlySet<string>): JsonObject {
    const values = 'const' in given ? [given['const']] : Array.isArray(given['enum']) ? given['enum'] : null;
    const type = typesOf(given['type'])[0] ?? inferredType(given, values);
    const isTexts = type === 'string' && values !== null && values.every((one) => typeof one === 'string');
    const texts = isTexts ? values.filter((one) => one !== '') : [];
    const notes = [
      ...(values !== null && !isTexts ? [`One of ${admitText(JSON.stringify(values), MAX_NOTE)}.`] : []),
      ...NOTES.filter(
        (name) => given[name] !== undefined && given[name] !== null && typeof given[name] !== 'object',
      ).map((name) => `${name}: ${admitText(String(given[name]), MAX_NOTE)}`),
    ];
    return {
      ...(type !== undefined && { type }),
      ...describedBy([given['description'], ...notes].filter((one) => typeof one === 'string').join(' ')),
      ...(texts.length > 0 && { enum: [...new Set(texts)] }),
      ...bounds(given, type),
      ...(type === 'object' && this.#members(given, depth, path)),
      ...(type === 'array' && { items: this.#items(given, depth, path) }),
    };
  }

  #members(given: JsonObject, depth: number, path: ReadonlySet<string>): JsonObject {
    const properties: Record<string, JsonObject> = {};
    const required = new Set(namesIn(given['required']));
    for (const [name, property] of Object.entries(isObject(given['properties']) ? given['properties'] : {})) {
      // `required` beside the properties instead of beside `properties`.
      if (name === 'required' && Array.isArray(property)) {
        for (const one of namesIn(property)) required.add(one);
        continue;
      }
      if (!SAFE_PROPERTY.test(name)) throw new Unusable(`the property ${name}`);
      // Of the third draft: in the property itself.
      if (isObject(property) && property['required'] === true) required.add(name);
      properties[name] = this.convert(property, depth + 1, path);
    }
    const present = [...required].filter((name) => Object.hasOwn(properties, name));
    return { properties, ...(present.length > 0 && { required: present }) };
  }

  #items(given: JsonObject, depth: number, path: ReadonlySet<string>): JsonObject {
    const items = given['items'] ?? given['prefixItems'];
    const listed = Array.isArray(items) ? items.map((one) => this.convert(one, depth + 1, path)) : [];
    const one = listed.length > 1 ? { anyOf: listed } : (listed[0] ?? this.convert(items, depth + 1, path));
    // Strict endpoints require that items have a type.
    return Object.keys(one).length === 0 ? { type: 'string' } : one;
  }
}

function typesOf(type: unknown): string[] {
  const names = Array.isArray(type) ? (type as unknown[]) : [type];
  const known = names.flatMap((name) => (typeof name === 'string' ? (TYPES[name.toLowerCase()] ?? []) : []));
  return [...new Set(known)];
}

function inferredType(given: JsonObject, values: readonly unknown[] | null): string | undefined {
  if (isObject(given['properties'])) return 'object';
  if (given['items'] !== undefined || given['prefixItems'] !== undefined) return 'array';
  return values?.every((one) => typeof one === 'string') === true ? 'string' : undefined;
}

function bounds(given: JsonObject, type: string | undefined): JsonObject {
  const known = BOUNDS.filter(([name, types]) => {
    const value = given[name];
    // Bounds of safe integers say nothing, and are too large for some endpoints.
    return typeof value === 'number' && Math.abs(value) < 1e9 && types.includes(type ?? '');
  });
  return Object.fromEntries(known.map(([name]) => [name, given[name]]));
}

function describedBy(description: unknown): JsonObject {
  const text = typeof description === 'string' ? description.trim() : '';
  return text === '' ? {} : { description: text };
}

function namesIn(list: unknown): string[] {
  return Array.isArray(list) ? (list as unknown[]).filter((one) => typeof one === 'string') : [];
}
