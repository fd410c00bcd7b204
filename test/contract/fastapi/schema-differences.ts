/**
 * What a client of the contract's OpenAPI document would miss in Parley's: members, parameters, nulls, defaults, types.
 * Parley may have more operations, members and parameters, may limit values (lengths, ranges, patterns), and may always
 * answer what the contract calls optional.
 */
import { z } from 'zod';

type Json = Readonly<Record<string, unknown>>;
/** Requests are read by Parley, responses are written by it. */
type Direction = 'request' | 'response';

const map = z.record(z.string(), z.unknown());
const names = z.array(z.string()).default([]);
const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

/** One line for each difference: where, and what. */
export function schemaDifferences(contract: unknown, parley: unknown): string[] {
  return new Comparison(map.parse(contract), map.parse(parley)).all();
}

class Comparison {
  readonly #contract: Json;
  readonly #parley: Json;
  readonly #found: string[] = [];
  /** Pairs under comparison: schemas may contain themselves. */
  readonly #seen = new Set<string>();

  constructor(contract: Json, parley: Json) {
    this.#contract = contract;
    this.#parley = parley;
  }

  all(): string[] {
    const paths = map.parse(this.#parley['paths']);
    for (const [path, item] of Object.entries(map.parse(this.#contract['paths']))) {
      for (const method of METHODS) {
        const operation = map.parse(item)[method];
        if (operation === undefined) continue;
        const own = map.parse(paths[path] ?? {})[method];
        const at = `${method.toUpperCase()} ${path.replace('/api/v1', '')}`;
        if (own === undefined) this.#found.push(`${at}: absent`);
        else this.#operation(at, map.parse(operation), map.parse(own));
      }
    }
    return this.#found;
  }

  #operation(at: string, contract: Json, parley: Json): void {
    const parameters = (of: Json): Json[] => z.array(map).default([]).parse(of['parameters']);
    for (const parameter of parameters(contract)) {
      const { name, in: part } = parameter;
      const own = parameters(parley).find((one) => one['name'] === name && one['in'] === part);
      const here = `${at} ${String(part)} ${String(name)}`;
      if (own === undefined) {
        this.#found.push(`${here}: absent`);
        continue;
      }
      for (const fact of ['required', 'deprecated'])
        this.#same(here, fact, parameter[fact] ?? false, own[fact] ?? false);
      this.#schema(here, parameter['schema'], own['schema'], 'request');
    }
    const body = (of: unknown): unknown => at_(of, 'content', 'application/json', 'schema');
    if (contract['requestBody'] !== undefined) {
      this.#schema(`${at} body`, body(contract['requestBody']), body(parley['requestBody']), 'request');
    }
    for (const [status, response] of Object.entries(map.parse(contract['responses']))) {
      const own = map.parse(parley['responses'])[status];
      if (own === undefined) this.#found.push(`${at} ${status}: absent`);
      else this.#schema(`${at} ${status}`, body(response), body(this.#resolved(own)), 'response');
    }
  }

  /** Parley's document names answers that operations have in common. */
  #resolved(own: unknown): unknown {
    const { $ref } = map.parse(own);
    return typeof $ref === 'string' ? at_(this.#parley, ...$ref.slice(2).split('/')) : own;
  }

  #schema(at: string, contract: unknown, parley: unknown, direction: Direction): void {
    const wanted = shapeOf(contract, this.#contract);
    const own = shapeOf(parley, this.#parley);
    if (wanted.refs.length > 0) {
      const pair = `${direction} ${wanted.refs.join()} ${own.refs.join()}`;
      if (this.#seen.has(pair)) return;
      this.#seen.add(pair);
    }
    if (wanted.forms.length === 0) return;
    this.#same(at, 'null', wanted.isNullable, own.isNullable);
    // FastAPI's documents leave out defaults that are null.
    this.#same(at, 'default', wanted.fallback ?? null, own.fallback ?? null);
    for (const form of wanted.forms) {
      const match = own.forms.length === 1 && wanted.forms.length === 1 ? own.forms[0] : like(form, own.forms);
      if (match === undefined) this.#found.push(`${at}: no ${labelOf(form)}`);
      else this.#form(`${at}${wanted.forms.length > 1 ? ` ${labelOf(form)}` : ''}`, form, match, direction);
    }
    const more = own.forms.filter((form) => like(form, wanted.forms) === undefined);
    if (wanted.forms.length > 1) this.#found.push(...more.map((form) => `${at}: also ${labelOf(form)}`));
  }

  #form(at: string, contract: Json, parley: Json, direction: Direction): void {
    for (const fact of ['type', 'const']) this.#same(at, fact, contract[fact], parley[fact]);
    // The contract shows times as plain strings.
    if (contract['format'] !== undefined || parley['format'] !== 'date-time') {
      this.#same(at, 'format', contract['format'], parley['format']);
    }
    this.#same(at, 'enum', names.parse(contract['enum']).toSorted(), names.parse(parley['enum']).toSorted());
    if (contract['items'] !== undefined) this.#schema(`${at}[]`, contract['items'], parley['items'] ?? {}, direction);
    const values = contract['additionalProperties'];
    if (typeof values === 'object') this.#schema(`${at}{}`, values, parley['additionalProperties'] ?? {}, direction);
    const own = map.default({}).parse(parley['properties']);
    for (const [name, schema] of Object.entries(map.default({}).parse(contract['properties']))) {
      const here = `${at}.${name}`;
      if (!(name in own)) {
        this.#found.push(`${here}: absent`);
        continue;
      }
      const [isRequired, isOwnRequired] = [contract, parley].map((of) => names.parse(of['required']).includes(name));
      if (isRequired !== isOwnRequired && !(direction === 'response' && isOwnRequired)) {
        this.#found.push(`${here}: required is ${isOwnRequired}, not ${isRequired}`);
      }
      this.#schema(here, schema, own[name], direction);
    }
    if (direction === 'response') return;
    for (const name of names.parse(parley['required'])) {
      if (!(name in map.default({}).parse(contract['properties'])))
        this.#found.push(`${at}.${name}: required, and unknown`);
    }
  }

  #same(at: string, fact: string, contract: unknown, parley: unknown): void {
    const [wanted, own] = [contract, parley].map((value) => JSON.stringify(value) ?? 'absent');
    if (wanted !== own) this.#found.push(`${at}: ${fact} is ${own}, not ${wanted}`);
  }
}

/** A schema without references: its alternatives other than null, whether null is one, and its default. */
interface Shape {
  readonly forms: readonly Json[];
  readonly isNullable: boolean;
  readonly fallback: unknown;
  readonly refs: readonly string[];
}

function shapeOf(schema: unknown, document: Json): Shape {
  const { $ref, anyOf, oneOf, default: fallback, type, ...rest } = map.default({}).parse(schema);
  if (typeof $ref === 'string') {
    const shape = shapeOf(at_(document, ...$ref.slice(2).split('/')), document);
    return { ...shape, refs: [$ref, ...shape.refs], fallback: fallback ?? shape.fallback };
  }
  const parts = z
    .array(z.unknown())
    .optional()
    .parse(anyOf ?? oneOf);
  if (parts !== undefined) {
    const shapes = parts.map((part) => shapeOf(part, document));
    return {
      forms: shapes.flatMap((one) => one.forms),
      isNullable: shapes.some((one) => one.isNullable),
      refs: shapes.flatMap((one) => one.refs),
      fallback,
    };
  }
  const types = z.array(z.string()).parse(type === undefined ? [] : [type].flat());
  const plain = types.filter((one) => one !== 'null');
  const isAny = types.length === 0 && Object.keys(rest).every((key) => ['description', 'deprecated'].includes(key));
  return {
    forms: isAny ? [] : plain.length === 0 && types.length > 0 ? [] : [{ ...rest, type: plain[0] }],
    isNullable: types.includes('null'),
    refs: [],
    fallback,
  };
}

/** By its tag, its required members or its type. */
function like(form: Json, forms: readonly Json[]): Json | undefined {
  const label = labelOf(form);
  return forms.find((one) => labelOf(one) === label);
}

function labelOf(form: Json): string {
  const properties = map.default({}).parse(form['properties']);
  const tag = at_(properties['type'], 'const') ?? at_(properties['kind'], 'const');
  return tag === undefined ? String(form['type']) : JSON.stringify(tag);
}

function at_(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (inner, name) => (typeof inner === 'object' && inner !== null ? Reflect.get(inner, name) : undefined),
    value,
  );
}
