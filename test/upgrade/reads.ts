/**
 * Reads a Parley through all of its GET routes, as its OpenAPI document lists them: each list page by page and with each
 * filter, each entity now and as of its earlier events, each event stream from its start. What is written later can be
 * read from the same addresses again.
 */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { asRecord } from '#test/support/log-reader.ts';
import { type Caller, itemsOf } from './caller.ts';

export interface Reading {
  readonly status: number;
  readonly etag: string | null;
  readonly text: string;
}

/** By caller and address, such as `admin /api/v1/agents?size=3`. */
export type Readings = Map<string, Reading>;

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly schema: Record<string, unknown>;
}

interface Route {
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly streams: boolean;
}

/** Filters whose values are not those of a member of the items. */
export type Values = Readonly<Record<string, readonly string[]>>;

const LIST_SIZE = 3;
const MAX_AS_OF = 12;
const MAX_ATTEMPTS = 60;
const MAX_FILTER_VALUES = 4;
/** Values that expire, and the parameters of pages. */
/** Its addresses are signed anew: what they answer is compared where an item names them. */
const FILES = '/api/v1/media/files/{token}';
const SKIPPED = new Set(['include_tool_call_updates', 'size', 'page', 'cursor', 'after']);

export class Reader {
  readonly #callers: Readonly<Record<string, Caller>>;
  readonly #values: Values;
  /** Ids by the path of their list; deleted entities, too. */
  readonly #ids: Map<string, Set<string>>;

  /**
   * @param callers the first one reads everything, the others what each entity is now
   * @param values of filters, by the names of their parameters
   * @param ids of entities that no list has, by the path of their list
   */
  constructor(callers: Readonly<Record<string, Caller>>, values: Values, ids: Readonly<Record<string, string[]>>) {
    this.#callers = callers;
    this.#values = values;
    this.#ids = new Map(Object.entries(ids).map(([list, all]) => [list, new Set(all)]));
  }

  /** Finds what can be read. @returns the readings, and routes for which no address was found */
  async discover(): Promise<{ readonly readings: Readings; readonly unread: string[] }> {
    const [first = ''] = Object.keys(this.#callers);
    const routes = routesOf(await this.#callerOf(first).get('/openapi.json'));
    const readings: Readings = new Map();
    // What a route answers has the ids for others, until nothing new is found.
    for (let size = -1; size !== readings.size;) {
      size = readings.size;
      for (const route of routes) {
        const addresses = this.#expand(route.path).filter((address) => !readings.has(`${first} ${address}`));
        await atOnce(6, addresses, (address) => this.#readAll(route, address, readings));
      }
    }
    const unread = routes.map(({ path }) => path).filter((path) => this.#expand(path).length === 0);
    return { readings, unread };
  }

  /** Reads an address as all callers, and its variants as the first one. */
  async #readAll(route: Route, address: string, readings: Readings): Promise<void> {
    for (const [index, [name, caller]] of Object.entries(this.#callers).entries()) {
      const base = await this.#read(caller, address, route.streams, null);
      readings.set(`${name} ${address}`, base);
      if (index > 0 || base.status >= 400 || route.streams) continue;
      this.#note(route.path, base);
      for (const [query, reading] of await this.#variants(caller, route, address, base)) {
        readings.set(`${name} ${query}`, reading);
        this.#note(route.path, reading);
      }
    }
  }

  /** Reads the same addresses, of another version, too. */
  async again(former: Readings): Promise<Readings> {
    const readings: Readings = new Map();
    await atOnce(6, [...former], async ([key, before]) => {
      const [name = '', address = ''] = key.split(' ');
      const streams = new URL(address, 'http://any').pathname.endsWith('/events') && before.status === 200;
      readings.set(key, await this.#read(this.#callerOf(name), address, streams, before.text));
    });
    return readings;
  }

  #callerOf(name: string): Caller {
    const caller = this.#callers[name];
    if (caller === undefined) throw new Error(`no caller ${name}`);
    return caller;
  }

  #expand(path: string): string[] {
    const place = path.search(/\{[^}]+\}/);
    if (place < 0) return [path];
    const list = path.slice(0, place - 1);
    const [parameter = ''] = /\{[^}]+\}/.exec(path) ?? [];
    const ids = [...(this.#ids.get(list) ?? [])];
    return ids.flatMap((id) => this.#expand(path.replace(parameter, id)));
  }

  /** Remembers the ids in a list, and those of interactions, runs and files that it names. */
  #note(path: string, { text, status }: Reading): void {
    if (status !== 200 || !text.startsWith('{')) return;
    const body = asRecord(JSON.parse(text));
    const add = (list: string, id: unknown): void => {
      if (typeof id !== 'string' || id === '') return;
      const known = this.#ids.get(list) ?? new Set();
      this.#ids.set(list, known.add(id));
    };
    for (const item of itemsOf(body)) {
      if (!path.includes('{')) add(path, item['id']);
      if (path.endsWith('/interactions')) add('/api/v1/interactions', item['id']);
      if (path.endsWith('/runs')) add('/api/v1/runs', item['id']);
      add('/api/v1/runs', item['run_id']);
    }
    for (const [, id] of text.matchAll(/"run_id":"([0-9a-f-]{36})"/g)) add('/api/v1/runs', id);
  }

  /** The pages of a list, its filters, and earlier states. */
  async #variants(caller: Caller, route: Route, address: string, base: Reading): Promise<[string, Reading][]> {
    const found: [string, Reading][] = [];
    const read = async (query: string): Promise<Reading> => {
      const reading = await this.#read(caller, `${address}?${query}`, route.streams, null);
      found.push([`${address}?${query}`, reading]);
      return reading;
    };
    const names = new Set(route.parameters.map(({ name }) => name));
    const body = base.text.startsWith('{') ? asRecord(JSON.parse(base.text)) : {};
    if (names.has('include_incomplete')) await read('include_incomplete=true&include_nested_interactions=true');
    if (names.has('size') && names.has('cursor')) {
      await read(`size=${LIST_SIZE}&page=2`);
      let query = `size=${LIST_SIZE}`;
      for (;;) {
        const { meta } = asRecord(JSON.parse((await read(query)).text));
        const cursor = asRecord(meta ?? {})['next_cursor'];
        if (typeof cursor !== 'string') break;
        query = `size=${LIST_SIZE}&cursor=${encodeURIComponent(cursor)}`;
      }
    }
    for (const { name, schema } of route.parameters) {
      if (SKIPPED.has(name)) continue;
      for (const value of this.#valuesOf(name, schema, body)) await read(`${name}=${encodeURIComponent(value)}`);
    }
    return found;
  }

  #valuesOf(name: string, schema: Record<string, unknown>, body: Record<string, unknown>): readonly string[] {
    const own = this.#values[name];
    if (own !== undefined) return own;
    if (name === 'as_of') return [...sequencesOf(body), ...timesOf(body)];
    if (name.endsWith('_sequence')) return sequencesOf(body);
    if (schema['format'] === 'date-time') return timesOf(body);
    const kinds = [schema, ...(Array.isArray(schema['anyOf']) ? schema['anyOf'].map(asRecord) : [])];
    if (kinds.some(({ type }) => type === 'boolean')) return ['true', 'false'];
    const choices = kinds.flatMap((kind) => (Array.isArray(kind['enum']) ? kind['enum'].map(String) : []));
    if (choices.length > 0) return choices;
    const seen = itemsOf(body).flatMap((item) => {
      const value = item[name] ?? item[`${name}_id`];
      return typeof value === 'string' && value !== '' ? [value] : [];
    });
    return [...new Set(seen)].slice(0, MAX_FILTER_VALUES);
  }

  async #read(caller: Caller, address: string, streams: boolean, former: string | null): Promise<Reading> {
    for (let attempt = 0; ; attempt += 1) {
      const headers = streams ? { accept: 'text/event-stream', 'last-event-id': '0' } : {};
      const response = await caller.fetch('GET', address, undefined, headers);
      const { status } = response;
      const type = response.headers.get('content-type') ?? '';
      const text = type.startsWith('text/event-stream') ? await eventsOf(response, former) : await textOf(response);
      // Costly reads are limited; a search index is being built.
      const isLater = status === 429 || status === 503;
      if (isLater && attempt < MAX_ATTEMPTS) await delay(1_000);
      else return { status, etag: response.headers.get('etag'), text: await this.#withFiles(text) };
    }
  }

  /** Addresses of files are signed anew each quarter of an hour: replaces them by what they answer. */
  async #withFiles(text: string): Promise<string> {
    let result = text;
    for (const url of new Set(text.match(/http:\/\/[^"\s]*\/api\/v1\/media\/files\/[^"\s]+/g))) {
      const response = await fetch(url);
      const bytes = Buffer.from(await response.arrayBuffer());
      const hash = createHash('sha256').update(bytes).digest('hex');
      const file = `${response.status} ${response.headers.get('content-type')} ${bytes.length} ${hash}`;
      result = result.replaceAll(url, file);
    }
    return result;
  }
}

/** Sequences of an entity's first events, and of later ones: for lists, those of the items; of an interaction, its own. */
function sequencesOf(body: Record<string, unknown>): string[] {
  if (typeof body['sequence'] === 'number') return [String(body['sequence']), String(body['sequence'] + 2)];
  const own = itemsOf(body).map(({ sequence }) => Number(sequence));
  const highest = Math.max(MAX_AS_OF, ...own.filter(Number.isFinite));
  const step = Math.max(1, Math.floor(highest / MAX_AS_OF));
  return Array.from({ length: MAX_AS_OF }, (_, index) => String(1 + index * step));
}

/** When the entity, or one in the middle of the list, was created. */
function timesOf(body: Record<string, unknown>): string[] {
  const items = itemsOf(body);
  const one = items[Math.floor(items.length / 2)] ?? body;
  const created = one['created_at'] ?? one['created'];
  return typeof created === 'string' ? [created] : [];
}

function routesOf(document: Record<string, unknown>): Route[] {
  const { components } = document;
  const named = asRecord(asRecord(components ?? {})['parameters'] ?? {});
  return Object.entries(asRecord(document['paths'])).flatMap(([path, operations]) => {
    const { get, parameters: shared } = asRecord(operations);
    if (get === undefined || !path.startsWith('/api/') || path === FILES) return [];
    const operation = asRecord(get);
    const all = [...(Array.isArray(shared) ? shared : []), ...listOf(operation['parameters'])].map((parameter) => {
      const { $ref } = asRecord(parameter);
      const {
        name,
        in: where,
        schema,
      } = asRecord($ref === undefined ? parameter : named[String($ref).split('/').at(-1) ?? '']);
      return { name: String(name), in: String(where), schema: asRecord(schema ?? {}) };
    });
    const streams = JSON.stringify(asRecord(operation['responses'])['200'] ?? {}).includes('text/event-stream');
    return [{ path, parameters: all.filter((parameter) => parameter.in === 'query'), streams }];
  });
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

async function textOf(response: Response): Promise<string> {
  const type = response.headers.get('content-type') ?? '';
  if (type.includes('json') || type.startsWith('text/')) return response.text();
  const bytes = Buffer.from(await response.arrayBuffer());
  return `${type} ${bytes.length} ${createHash('sha256').update(bytes).digest('hex')}`;
}

/** An event stream has no end while its entity lives: reads what another version has read of it, and what follows soon. */
async function eventsOf(response: Response, former: string | null): Promise<string> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return '';
  let text = '';
  const lastId = former === null ? undefined : idsOf(former).at(-1);
  try {
    for (;;) {
      const complete = lastId === undefined ? former !== null : idsOf(text).includes(lastId);
      const wait = new AbortController();
      const next = await Promise.race([
        reader.read(),
        delay(complete ? 500 : 5_000, null, { signal: wait.signal }).catch(() => null),
      ]);
      wait.abort();
      if (next === null || next.done) break;
      text += next.value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
  // Comments are heartbeats; the delay before a reconnection is no event.
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith(':') && !line.startsWith('retry:'))
    .join('\n');
}

const idsOf = (text: string): string[] => [...text.matchAll(/^id: (.*)$/gm)].map(([, id = '']) => id);

async function atOnce<T>(limit: number, all: readonly T[], each: (one: T) => Promise<void>): Promise<void> {
  const rest = [...all];
  const take = async (): Promise<void> => {
    for (let one = rest.shift(); one !== undefined; one = rest.shift()) await each(one);
  };
  await Promise.all(Array.from({ length: limit }, take));
}
