/** Adds the members that an object of earlier times, or of less careful writers, lacks: with the defaults of a schema. */
import type { z } from 'zod';

import { definition, discriminatorOf, isContainer, unwrapped } from './schema-path.ts';

type Schema = z.core.$ZodType;
/** Returns the value itself if it lacks nothing. */
type Completion = (value: unknown) => unknown;

/**
 * A function that adds absent members with the defaults that `schema` declares for them, at every level. It checks
 * nothing: other values, members that the schema lacks and members of other types stay as they are.
 */
export function completionOf<T>(schema: z.ZodType<T>): <Value>(value: Value) => Value {
  const complete = ofSchema(schema) ?? ((value: unknown) => value);
  return <Value>(value: Value) => complete(value) as Value;
}

/** Null if the values of the schema have no defaults. */
function ofSchema(schema: Schema): Completion | null {
  const inner = unwrapped(schema);
  const def = inner && definition(inner);
  switch (def?.type) {
    case 'object':
      return ofObject(def.shape);
    case 'array': {
      const element = ofSchema(def.element);
      return element && ((value) => (Array.isArray(value) ? value.map(element) : value));
    }
    case 'union':
      return ofUnion(def);
    default:
      return null;
  }
}

function ofObject(shape: Readonly<Record<string, Schema>>): Completion | null {
  const members = Object.entries(shape).flatMap(([name, schema]) => {
    const fallback = fallbackOf(schema);
    const complete = ofSchema(schema);
    return fallback === undefined && complete === null ? [] : [{ name, fallback, complete }];
  });
  if (members.length === 0) return null;
  return (value) => {
    if (!isContainer(value)) return value;
    let completed: Record<string, unknown> | null = null;
    for (const { name, fallback, complete } of members) {
      const found: unknown = Reflect.get(value, name);
      const wanted = found === undefined ? fallback : complete === null ? found : complete(found);
      if (wanted !== found) (completed ??= { ...value })[name] = wanted;
    }
    return completed ?? value;
  };
}

function fallbackOf(schema: Schema): unknown {
  const def = definition(schema);
  return def.type === 'default' ? def.defaultValue : undefined;
}

function ofUnion(def: z.core.$ZodUnionDef): Completion | null {
  const options = def.options.map((option) => ({ fits: fitsOf(option, def), complete: ofSchema(option) }));
  if (options.every(({ complete }) => complete === null)) return null;
  return (value) => {
    if (!isContainer(value)) return value;
    const complete = options.find(({ fits }) => fits(value))?.complete;
    return complete ? complete(value) : value;
  };
}

/** Whether an object is of a member of a union: by its tag, else by the required members. */
function fitsOf(option: Schema, union: z.core.$ZodUnionDef): (value: object) => boolean {
  const inner = unwrapped(option);
  const def = inner && definition(inner);
  if (def?.type !== 'object') return () => false;
  const tag = discriminatorOf(union);
  if (tag !== undefined) {
    const values = unwrapped(def.shape[tag])?._zod.values;
    return (value) => values?.has(Reflect.get(value, tag)) === true;
  }
  const required = Object.keys(def.shape).filter((name) => def.shape[name]?._zod.optin === undefined);
  return (value) => required.every((name) => name in value);
}
