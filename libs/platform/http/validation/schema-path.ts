import { globalRegistry, type z } from 'zod';

type Schema = z.core.$ZodType;
type AnyDef = z.core.$ZodTypes['_zod']['def'];

/** The location of an issue: pydantic's `loc`, the value there, and its schema. */
export interface IssueLocation {
  readonly loc: readonly (string | number)[];
  readonly schema: Schema | undefined;
  readonly value: unknown;
  /** False if the object or list has no such member. */
  readonly present: boolean;
  /** The object or list that contains (or lacks) it; `undefined` at the root. */
  readonly parent: unknown;
}

/** Unwraps a schema from everything that does not change the form of its input. */
export function unwrapped(schema: Schema | undefined): Schema | undefined {
  let inner = schema;
  for (;;) {
    const def = inner && definition(inner);
    switch (def?.type) {
      case 'optional':
      case 'nullable':
      case 'default':
      case 'prefault':
      case 'nonoptional':
      case 'readonly':
      case 'catch':
        inner = def.innerType;
        break;
      case 'pipe':
        inner = definition(def.in).type === 'transform' ? def.out : def.in;
        break;
      case 'lazy':
        inner = def.getter();
        break;
      default:
        return inner;
    }
  }
}

/** zod types `def` of an unknown schema without its members; its `type` discriminates them. */
export function definition(schema: Schema): AnyDef {
  return schema._zod.def as AnyDef;
}

/**
 * Follows `path` through data and schema. The tag of a discriminated union is part of `loc` as in pydantic: after the
 * location of the union, before that of the member.
 */
export function locate(root: Schema, data: unknown, path: readonly PropertyKey[]): IssueLocation {
  const loc: (string | number)[] = [];
  let schema: Schema | undefined = unwrapped(root);
  let value = data;
  let parent: unknown;
  let present = data !== undefined;
  for (const segment of path) {
    const key = typeof segment === 'symbol' ? String(segment) : segment;
    const member = selectMember(schema, value, key);
    loc.push(...member.labels, key);
    schema = unwrapped(member.schema);
    parent = value;
    present = isContainer(value) && Object.hasOwn(value, key);
    value = present && isContainer(value) ? Reflect.get(value, key) : undefined;
  }
  return { loc, schema, value, present, parent };
}

interface Member {
  readonly schema: Schema | undefined;
  /** Tags of the unions on the path, which pydantic inserts before the key. */
  readonly labels: readonly string[];
}

function selectMember(schema: Schema | undefined, value: unknown, key: string | number): Member {
  const def = schema && definition(schema);
  switch (def?.type) {
    case 'object':
      return { schema: def.shape[key], labels: [] };
    case 'array':
      return { schema: def.element, labels: [] };
    case 'tuple':
      return { schema: def.items[Number(key)] ?? def.rest ?? undefined, labels: [] };
    case 'record':
      return { schema: def.valueType, labels: [] };
    case 'union': {
      const chosen = chosenOption(def, value, key);
      if (chosen === undefined) return { schema: undefined, labels: [] };
      const inner = selectMember(unwrapped(chosen.option), value, key);
      return { schema: inner.schema, labels: [chosen.label, ...inner.labels] };
    }
    default:
      return { schema: undefined, labels: [] };
  }
}

function chosenOption(def: z.core.$ZodUnionDef, value: unknown, key: string | number) {
  const discriminator = discriminatorOf(def);
  for (const option of def.options) {
    const inner = unwrapped(option);
    const shape = inner && definition(inner);
    if (shape?.type !== 'object') continue;
    if (discriminator === undefined) {
      if (Object.hasOwn(shape.shape, key)) return { option, label: unionLabel(option) };
      continue;
    }
    const tag = isContainer(value) ? Reflect.get(value, discriminator) : undefined;
    const tagSchema = unwrapped(shape.shape[discriminator]);
    if (tagSchema?._zod.values?.has(tag)) return { option, label: String(tag) };
  }
  return undefined;
}

export function discriminatorOf(def: z.core.$ZodUnionDef): string | undefined {
  return 'discriminator' in def && typeof def.discriminator === 'string' ? def.discriminator : undefined;
}

const LABELS: Readonly<Record<string, string>> = {
  string: 'str',
  number: 'float',
  boolean: 'bool',
  record: 'dict[str,any]',
  array: 'list[any]',
};

/**
 * Pydantic's name of a member of a union without tags: the name of a model, the type of a scalar. Names come from
 * `.meta({ id })`, as in the OpenAPI document.
 */
export function unionLabel(option: Schema): string {
  const inner = unwrapped(option) ?? option;
  return (
    globalRegistry.get(inner)?.id ??
    globalRegistry.get(option)?.id ??
    (isInteger(inner) ? 'int' : (LABELS[definition(inner).type] ?? definition(inner).type))
  );
}

export function isInteger(schema: Schema | undefined): boolean {
  if (schema === undefined) return false;
  const def = definition(schema);
  const checks = [def, ...(def.checks ?? []).map((check) => check._zod.def)];
  return def.type === 'number' && checks.some((check) => 'format' in check && check.format === 'safeint');
}

export function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
