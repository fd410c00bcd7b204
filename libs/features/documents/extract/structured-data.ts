import { parsedJson } from '#libs/kernel/json.ts';
import { admitText } from '#libs/kernel/text.ts';

import type { Attributes } from './html-node.ts';
import type { Json, JsonObject } from './extraction.ts';

/** Characters of one script with JSON-LD, and how many scripts are read. */
const MAX_SCRIPT = 512 * 1024;
const MAX_SCRIPTS = 50;
const MAX_DEPTH = 12;
const MAX_STRING = 2_000;
/** Values of all objects of a page. */
const MAX_VALUES = 5_000;
const MAX_ITEMS = 200;
/** Items that are open at once, and values whose text is being read. */
const MAX_OPEN = 16;

const FORBIDDEN = new Set(['__proto__', 'constructor', 'prototype']);

export interface Budget {
  /** Values that are left. */
  values: number;
  /** Of an array or object; default MAX_ITEMS. */
  readonly items?: number;
  readonly depth?: number;
}

/** A copy within limits: depth, number of values, length of strings; without names that mean something to JavaScript. */
export function boundedJson(value: unknown, budget: Budget, depth = 0): Json | undefined {
  budget.values -= 1;
  if (budget.values < 0 || depth > (budget.depth ?? MAX_DEPTH)) return undefined;
  if (typeof value === 'string') return admitText(value, MAX_STRING);
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return value;
  if (typeof value !== 'object') return undefined;
  if (Array.isArray(value)) {
    return value
      .slice(0, budget.items ?? MAX_ITEMS)
      .flatMap((item: unknown) => boundedJson(item, budget, depth + 1) ?? []);
  }
  const copy: Record<string, Json> = {};
  for (const [key, member] of Object.entries(value).slice(0, budget.items ?? MAX_ITEMS)) {
    const bounded = FORBIDDEN.has(key) ? undefined : boundedJson(member, budget, depth + 1);
    if (bounded !== undefined) copy[admitText(key, 200)] = bounded;
  }
  return copy;
}

/** @returns the objects of a script with JSON-LD; arrays and `@graph` are flattened; what is not JSON is left out */
export function readJsonLd(script: string, budget: Budget): JsonObject[] {
  const parsed = parsedJson(script) ?? parsedJson(withoutWrapping(script));
  const bounded = parsed === undefined ? undefined : boundedJson(parsed, budget);
  return bounded === undefined ? [] : objectsOf(bounded);
}

/**
 * Some pages put the JSON into a comment or CDATA, end it with `;`, or have line breaks in strings. In linear time,
 * because no space follows another.
 */
function withoutWrapping(script: string): string {
  return script
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/^\s*(?:\/\/|\/\*)?\s*(?:<!--|<!\[CDATA\[)\s*(?:\*\/)?/, '')
    .replace(/(?:\/\/|\/\*)?\s*(?:-->|\]\]>)\s*(?:\*\/)?\s*$/, '')
    .replace(/;\s*$/, '');
}

function objectsOf(value: Json): JsonObject[] {
  if (Array.isArray(value)) return value.flatMap((item: Json) => objectsOf(item));
  if (!isObject(value)) return [];
  const graph = value['@graph'];
  return graph === undefined ? [value] : objectsOf(graph);
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Collects the scripts with JSON-LD of a page. */
export class JsonLdScripts {
  readonly objects: JsonObject[] = [];
  readonly #budget: Budget = { values: MAX_VALUES };
  #script: string | null = null;
  #scripts = 0;

  enter(type: string | undefined): (() => void) | null {
    if (!type?.toLowerCase().includes('ld+json') || this.#scripts >= MAX_SCRIPTS) return null;
    this.#scripts += 1;
    this.#script = '';
    return () => {
      if (this.#script !== null && this.#script.length <= MAX_SCRIPT) {
        this.objects.push(...readJsonLd(this.#script, this.#budget));
      }
      this.#script = null;
    };
  }

  text(text: string): void {
    if (this.#script !== null && this.#script.length <= MAX_SCRIPT) this.#script += text;
  }
}

interface Item {
  readonly properties: Record<string, Json[]>;
}

/** Collects microdata: https://html.spec.whatwg.org/multipage/microdata.html */
export class Microdata {
  readonly #items: Item[] = [];
  readonly #open: Item[] = [];
  readonly #texts: { text: string }[] = [];
  readonly #resolve: (url: string) => string | null;
  #values = 0;

  /** @param resolve makes URLs absolute */
  constructor(resolve: (url: string) => string | null) {
    this.#resolve = resolve;
  }

  get isReading(): boolean {
    return this.#texts.length > 0;
  }

  get objects(): JsonObject[] {
    return this.#items.map(({ properties }) => objectOf(properties));
  }

  enter(name: string, attributes: Attributes): (() => void) | null {
    const { itemscope, itemprop } = attributes;
    if (itemscope !== undefined) return this.#enterItem(attributes);
    const item = this.#open.at(-1);
    if (itemprop === undefined || item === undefined) return null;
    const value = this.#valueOf(name, attributes);
    if (value !== null) {
      this.#add(item, itemprop, value);
      return null;
    }
    if (this.#texts.length >= MAX_OPEN) return null;
    const reading = { text: '' };
    this.#texts.push(reading);
    return () => {
      this.#texts.splice(this.#texts.indexOf(reading), 1);
      const text = reading.text.replace(/\s+/g, ' ').trim();
      if (text !== '') this.#add(item, itemprop, text);
    };
  }

  text(text: string): void {
    for (const reading of this.#texts)
      if (reading.text.length < MAX_STRING) reading.text += admitText(text, MAX_STRING);
  }

  #enterItem({ itemtype, itemid, itemprop }: Attributes): (() => void) | null {
    if (this.#open.length >= MAX_OPEN || this.#values >= MAX_VALUES) return null;
    const item: Item = { properties: {} };
    const type = itemtype?.trim().split(/[\s]+/)[0]?.split(/[/#]/).at(-1);
    if (type) item.properties['@type'] = [type];
    const id = itemid === undefined ? null : this.#resolve(itemid);
    if (id !== null) item.properties['@id'] = [id];
    const parent = this.#open.at(-1);
    if (parent === undefined || itemprop === undefined) this.#items.push(item);
    this.#open.push(item);
    return () => {
      this.#open.splice(this.#open.indexOf(item), 1);
      if (parent !== undefined && itemprop !== undefined) this.#add(parent, itemprop, objectOf(item.properties));
    };
  }

  #add(item: Item, names: string, value: Json): void {
    for (const name of names.trim().split(/\s+/).slice(0, 4)) {
      if (FORBIDDEN.has(name) || this.#values >= MAX_VALUES) continue;
      this.#values += 1;
      (item.properties[admitText(name, 200)] ??= []).push(value);
    }
  }

  /** @returns null: the value is the text of the element */
  #valueOf(name: string, { content, href, src, datetime, value }: Attributes): string | null {
    const url = href ?? src;
    if (content !== undefined) return admitText(content, MAX_STRING);
    if (datetime !== undefined && name === 'time') return admitText(datetime, MAX_STRING);
    if (value !== undefined && (name === 'data' || name === 'meter')) return admitText(value, MAX_STRING);
    return url === undefined ? null : this.#resolve(url);
  }
}

function objectOf(properties: Readonly<Record<string, Json[]>>): JsonObject {
  return Object.fromEntries(
    Object.entries(properties).map(([name, values]) => [name, values.length === 1 ? values[0]! : values]),
  );
}
