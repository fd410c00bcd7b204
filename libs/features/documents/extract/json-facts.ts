import { parsedJson } from '#libs/kernel/json.ts';
import type { Content, Json, JsonObject } from './extraction.ts';
import { cut, type FactCollector, addValue, keyOf } from './fact-collector.ts';
import { documentKey } from './section-facts.ts';
import { splitText } from './split-text.ts';
import { boundedJson, isObject } from './structured-data.ts';

const NAMES = ['name', 'title', 'label', 'id', 'key', 'slug'] as const;
const MAX_VALUES = 50_000;
const MAX_ITEMS = 5_000;
const MAX_DEPTH = 32;
const MAX_PROPERTIES = 30;
/** Searches of names in the text that may fail: the text may write them with escapes. */
const MAX_MISSES = 20;

/**
 * The facts of a JSON document: objects with a name, title or id are nodes, their other values are in the summary,
 * and the objects that they hold are connected to them. Values outside of such objects are facts of the document.
 *
 * @returns false: the text is not JSON
 */
export function addJson(facts: FactCollector, content: Content): boolean {
  const parsed = parsedJson(content.text.replace(/^\uFEFF/, ''));
  if (parsed === undefined) return false;
  const budget = { values: MAX_VALUES, items: MAX_ITEMS, depth: MAX_DEPTH };
  const value = boundedJson(parsed, budget) ?? null;
  if (budget.values < 0) facts.markTruncated();
  const ranges = splitText(content.text, 0, content.text.length);
  for (const range of ranges) facts.addPassage(content.text, range);
  const key = facts.addNode({
    key: documentKey(content),
    name: content.name.trim() || content.url || content.documentId,
    summary: propertiesOf(value) || cut(content.text, 300),
    labels: ['Document'],
    offset: ranges[0]?.start ?? null,
  });
  new JsonFacts(facts, content).addMembers(value, { key, name: content.name, path: '' });
  return true;
}

interface Holder {
  readonly key: string | null;
  readonly name: string;
  /** Property of the holder that the value is in; empty for the holder itself. */
  readonly path: string;
}

class JsonFacts {
  readonly #facts: FactCollector;
  readonly #documentId: string;
  readonly #text: string;
  readonly #occurrences = new Map<string, number>();
  #at = 0;
  #misses = 0;

  constructor(facts: FactCollector, { documentId, text }: Content) {
    this.#facts = facts;
    this.#documentId = documentId;
    this.#text = text;
  }

  addMembers(value: Json, holder: Holder): void {
    if (Array.isArray(value)) {
      // Lists of values are in the summary.
      for (const item of value as readonly Json[]) if (typeof item === 'object') this.#addMember(item, holder);
      return;
    }
    if (!isObject(value)) return;
    for (const [property, member] of Object.entries(value)) {
      this.#addMember(member, { ...holder, path: holder.path === '' ? property : `${holder.path}.${property}` });
    }
  }

  #addMember(value: Json, holder: Holder): void {
    const named = isObject(value) ? namedBy(value) : null;
    if (named !== null) return this.#addObject(value as JsonObject, named, holder);
    if (typeof value === 'object' && value !== null) return this.addMembers(value, holder);
    const isName = holder.path === '' || (NAMES as readonly string[]).includes(holder.path);
    if (value === null || isName) return;
    const about = { source: holder.key, subject: holder.name, name: holder.path };
    addValue(this.#facts, about, String(value), { offset: this.#offsetOf(value) });
  }

  #addObject(object: JsonObject, name: string, holder: Holder): void {
    const offset = this.#offsetOf(name);
    const type = typeof object['type'] === 'string' ? object['type'] : (holder.path.split('.').at(-1) ?? '');
    const path = `json:${this.#documentId}:${holder.path}:${keyOf(name)}`;
    const occurrence = this.#occurrences.get(path) ?? 0;
    this.#occurrences.set(path, occurrence + 1);
    const node = this.#facts.addNode({
      key: `${path}:${occurrence}`,
      name,
      summary: propertiesOf(object) || null,
      labels: [cut(type, 60) || 'Object'],
      offset,
    });
    const relation = holder.path === '' ? 'contains' : holder.path;
    const fact = `${cut(holder.name, 200)} — ${relation}: ${name}`;
    this.#facts.addEdge({ name: relation, fact, source: holder.key, target: node, offset });
    this.addMembers(object, { key: node, name, path: '' });
  }

  /** Where a value is written, after those before it. Null: it is written in another way. */
  #offsetOf(value: Json): number | null {
    if (this.#misses >= MAX_MISSES) return null;
    const at = this.#text.indexOf(JSON.stringify(value), this.#at);
    if (at === -1) this.#misses += 1;
    else this.#at = at;
    return at === -1 ? null : at;
  }
}

function namedBy(object: JsonObject): string | null {
  for (const property of NAMES) {
    const value = object[property];
    if ((typeof value === 'string' && value.trim() !== '') || typeof value === 'number') return String(value);
  }
  return null;
}

function propertiesOf(value: Json): string {
  if (!isObject(value)) return '';
  const texts = Object.entries(value).flatMap(([property, member]) => {
    const scalars = (Array.isArray(member) ? (member as readonly Json[]) : [member]).filter(
      (item) => item !== null && typeof item !== 'object',
    );
    return scalars.length === 0 ? [] : [`${property}: ${cut(scalars.slice(0, 20).join(', '), 300)}`];
  });
  return texts.slice(0, MAX_PROPERTIES).join('; ');
}
