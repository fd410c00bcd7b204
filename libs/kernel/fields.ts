/*
 * The members of an entity in one table: how events and the state store each, how the API answers it, what requests may
 * set it to, and its default. The order of the table is that of the members in JSON.
 */
import { z } from 'zod';

type Schema = z.ZodType | undefined;

/** A member that is stored under a name of its own. Exported, as are the two below, for the declarations of the package. */
export interface Field<Name extends string, Stored extends z.ZodType, Input extends Schema> {
  readonly name: Name;
  readonly stored: Stored;
  readonly output: z.ZodType;
  readonly input: Input;
  readonly byDefault: unknown;
  readonly isSetAsGiven: boolean;
}

/** A member that follows from the state. */
export interface Shown<State> {
  readonly output: z.ZodType;
  readonly from: (state: State) => unknown;
}

/** An object of the API whose members are stored one by one. */
export interface Group<Members extends Rows> {
  readonly members: Members;
}

type AnyField = Field<string, z.ZodType, Schema>;
interface Rows {
  readonly [member: string]: AnyField | Shown<never> | Group<Rows>;
}

interface FieldOptions<Stored extends z.ZodType, Input extends Schema> {
  /** Its value in a new entity, and where a request sets null. Without one, a new entity needs a value. */
  readonly byDefault?: z.output<Stored>;
  /** As the API answers it. Default: as it is stored. */
  readonly output?: z.ZodType;
  readonly input?: Input;
}

/** A field that requests set to a value as it is stored, if they set it at all. */
export function field<
  const Name extends string,
  Stored extends z.ZodType,
  Input extends z.ZodType<z.output<Stored> | null | undefined> | undefined = undefined,
>(
  name: Name,
  stored: Stored,
  { byDefault, output = stored, input }: FieldOptions<Stored, Input> = {},
): Field<Name, Stored, Input> {
  return { name, stored, output, input: input as Input, byDefault, isSetAsGiven: true };
}

/** A field that requests name in another form than the stored one: the feature finds the value. */
export function namedField<const Name extends string, Stored extends z.ZodType, Input extends z.ZodType>(
  name: Name,
  stored: Stored,
  { byDefault, output = stored, input }: FieldOptions<Stored, Input> & { readonly input: Input },
): Field<Name, Stored, Input> {
  return { name, stored, output, input, byDefault, isSetAsGiven: false };
}

export function shown<State, Output extends z.ZodType>(
  output: Output,
  from: (state: State) => NoInfer<z.input<Output>>,
): Shown<State> {
  return { output, from };
}

export function group<const Members extends Rows>(members: Members): Group<Members> {
  return { members };
}

type FieldsOf<T extends Rows> = {
  [M in keyof T]: T[M] extends Group<infer Members> ? FieldsOf<Members> : Extract<T[M], { readonly name: string }>;
}[keyof T];
type StoredShape<T extends Rows> = { [F in FieldsOf<T> as F['name']]: F['stored'] };
type Stored<T extends Rows> = z.output<z.ZodObject<StoredShape<T>>>;
type Changes<Fields> = { readonly [Name in keyof Fields]?: Fields[Name] | null | undefined };

type InputShape<T extends Rows> = {
  [M in keyof T as T[M] extends Group<Rows> | { readonly input: z.ZodType } ? M : never]: InputOf<T[M]>;
};
type InputOf<Row> =
  Row extends Group<infer Members>
    ? z.ZodOptional<z.ZodNullable<z.ZodObject<InputShape<Members>>>>
    : Row extends { readonly input: infer Input extends z.ZodType }
      ? Input
      : never;

/** The members of the state that `shown` members read. */
type ShownState<T extends Rows> = {
  [M in keyof T]: T[M] extends Shown<infer State> ? (state: State) => void : never;
}[keyof T] extends (state: infer State) => void
  ? State
  : unknown;

export interface FieldTable<T extends Rows> {
  /** Schemas of the fields, by their names in events and in the state. */
  readonly stored: StoredShape<T>;
  /** Schemas of the members as the API answers them. */
  readonly output: { readonly [M in keyof T]: z.ZodType };
  /** Schemas of the members that requests may set. */
  readonly input: InputShape<T>;
  /** Of the fields that have one. */
  readonly defaults: Stored<T>;
  /** The entity as the API answers it. */
  resource(state: Stored<T> & ShownState<T>): { [M in keyof T]: unknown };
  /** The fields that a request sets, by their names; null stands for the default. Without {@link namedField}s. */
  changes(body: { readonly [M in keyof InputShape<T>]?: unknown }): Changes<Stored<T>>;
}

export function fields<const T extends Rows>(rows: T): FieldTable<T> {
  const table = tableOf(rows);
  // Made from the rows, member by member, as the type says.
  return {
    ...table,
    resource: (state) => resourceOf(rows, state),
    changes: (body) => changesOf(rows, body),
  } as FieldTable<T>;
}

type Shape = Record<string, z.ZodType>;

function tableOf(rows: Rows) {
  const table = {
    stored: {} as Shape,
    output: {} as Shape,
    input: {} as Shape,
    defaults: {} as Record<string, unknown>,
  };
  for (const [member, row] of Object.entries(rows)) {
    if ('members' in row) {
      const inner = tableOf(row.members);
      Object.assign(table.stored, inner.stored);
      Object.assign(table.defaults, inner.defaults);
      table.output[member] = z.object(inner.output);
      table.input[member] = z.object(inner.input).nullish();
      continue;
    }
    table.output[member] = row.output;
    if ('from' in row) continue;
    table.stored[row.name] = row.stored;
    if (row.input !== undefined) table.input[member] = row.input;
    if (row.byDefault !== undefined) table.defaults[row.name] = row.byDefault;
  }
  return table;
}

function resourceOf(rows: Rows, state: object): Record<string, unknown> {
  const members = Object.entries(rows).map(([member, row]): [string, unknown] => {
    if ('members' in row) return [member, resourceOf(row.members, state)];
    if ('from' in row) return [member, row.from(state as never)];
    const stored: unknown = Reflect.get(state, row.name);
    return [member, stored === undefined ? row.byDefault : stored];
  });
  return Object.fromEntries(members);
}

function changesOf(rows: Rows, body: object | null): Record<string, unknown> {
  return Object.assign(
    {},
    ...Object.entries(rows).map(([member, row]) => {
      // A group that is set to null sets each of its members to null.
      const given: unknown = body === null ? null : Reflect.get(body, member);
      if ('members' in row) return given === undefined ? {} : changesOf(row.members, given as object | null);
      if ('from' in row || row.input === undefined || !row.isSetAsGiven) return {};
      return { [row.name]: given };
    }),
  ) as Record<string, unknown>;
}

type Camel<Name> = Name extends `${infer First}_${infer Rest}` ? `${First}${Capitalize<Camel<Rest>>}` : Name;
/** The members of a request by the names that events and states have for them: `imageUrl` for `image_url`. */
export function inCamelCase<Body extends object>(body: Body): { readonly [M in keyof Body as Camel<M>]: Body[M] } {
  const named = Object.entries(body).map(([member, value]) => [camelCase(member), value] as const);
  return Object.fromEntries(named) as { readonly [M in keyof Body as Camel<M>]: Body[M] };
}

/** The inverse of {@link inCamelCase}: `image_url` for `imageUrl`. */
export function inSnakeCase(fields: object): object {
  const snakeCase = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [snakeCase(name), value]));
}

function camelCase(member: string): string {
  return member.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

type AnyRow<State> = z.ZodType | readonly [schema: z.ZodType, from: (state: State) => unknown];
type AsReadonly<T> = T extends object ? { readonly [K in keyof T]: AsReadonly<T[K]> } : T;

/** Row of a member: its schema alone, where a property of the state fits it. */
type ShownRow<State, Name, Schema extends z.ZodType> =
  State extends Readonly<Record<Camel<Name> & string, AsReadonly<z.input<Schema>>>>
    ? Schema | readonly [Schema, (state: State) => AsReadonly<z.input<Schema>>]
    : readonly [Schema, (state: State) => AsReadonly<z.input<Schema>>];

/**
 * The members of an entity as the API answers it, where requests set none of them as they are stored. The value of a member is
 * the property of the state with its name in camel case (`imageUrl` of `image_url`), or what a function gives:
 *
 *     const userFields = shownFields<User>()({
 *       id: z.string(),
 *       image_url: z.string().nullable(),
 *       is_active: [z.boolean(), ({ deactivatedAt }) => deactivatedAt === null],
 *     });
 */
export function shownFields<State extends object>() {
  return <const T extends Record<string, z.ZodType>>(rows: {
    readonly [M in keyof T]: ShownRow<State, M, T[M]>;
  }) => {
    const table = Object.entries<AnyRow<State>>(rows as never).map(([member, row]) => {
      if (!(row instanceof z.ZodType)) return { member, schema: row[0], from: row[1] };
      const name = camelCase(member);
      return { member, schema: row, from: (state: State): unknown => Reflect.get(state, name) };
    });
    return {
      /** Schemas of the members, for `z.object`. */
      shape: Object.fromEntries(table.map(({ member, schema }) => [member, schema])) as T,
      /** The entity as the API answers it. */
      resource: (state: State) =>
        Object.fromEntries(table.map(({ member, from }) => [member, from(state)])) as {
          readonly [M in keyof T]: AsReadonly<z.input<T[M]>>;
        },
    };
  };
}
