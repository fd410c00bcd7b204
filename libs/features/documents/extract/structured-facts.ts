import type { Json, JsonObject, StructuredData } from './extraction.ts';
import { cut, type FactCollector, keyOf } from './fact-collector.ts';
import { isObject } from './structured-data.ts';

/** Types of schema.org that describe a page itself: what they state is stated of the document. */
const PAGE_TYPES =
  /^(?:WebPage|\w*Article|\w*BlogPosting|(?:About|Contact|FAQ|Item|Profile|QA|Collection|Search\w*|Checkout|Medical)Page)$/;
/** Types that describe how a site is built. */
const SITE_TYPES =
  /^(?:BreadcrumbList|ListItem|SiteNavigationElement|WP\w+|\w*Action|EntryPoint|ImageObject|WebSite|SpeakableSpecification)$/;
const IGNORED = new Set(['@context', '@id', '@type', 'name', 'headline', 'title', 'description', 'url', 'sameAs']);
const IGNORED_PROPERTIES = /^(?:mainEntityOfPage|potentialAction|image|logo|thumbnail\w*|breadcrumb|isPartOf|hasPart)$/;
const MAX_DEPTH = 6;
const MAX_LITERALS = 30;
const AUTHOR = /^(?:author|article:author|citation_author|dc[:.]creator|dcterms[:.]creator)$/;

/** Facts that a page states for machines: objects of JSON-LD and microdata that have a name, and its author. */
export function addStructuredData(facts: FactCollector, data: StructuredData, document: string): void {
  const reader = new ObjectFacts(facts, document, [...data.jsonLd, ...data.microdata]);
  for (const object of [...data.jsonLd, ...data.microdata]) reader.addStated(object);
  for (const [property, value] of Object.entries(data.openGraph)) {
    if (!AUTHOR.test(property) || /^https?:/.test(value)) continue;
    reader.addRelation(document, 'author', { '@type': 'Person', name: value });
  }
}

class ObjectFacts {
  readonly #facts: FactCollector;
  readonly #document: string;
  readonly #byId = new Map<string, JsonObject>();
  readonly #added = new Map<JsonObject, string | null>();

  constructor(facts: FactCollector, document: string, objects: readonly JsonObject[]) {
    this.#facts = facts;
    this.#document = document;
    for (const object of objects) {
      const id = object['@id'];
      if (typeof id === 'string' && !this.#byId.has(id)) this.#byId.set(id, object);
    }
  }

  /** An object that the page states by itself, not as a property of another one. */
  addStated(object: JsonObject): void {
    const type = typeOf(object);
    if (SITE_TYPES.test(type)) return;
    const node = this.#add(object, 0);
    if (node === null) return;
    const fact = `${nameOf(object) ?? type}${describedBy(object)}`;
    this.#facts.addEdge({ name: 'describes', fact, source: this.#document, target: node, offset: null });
  }

  addRelation(source: string, property: string, object: JsonObject, subject = '', depth = 0): void {
    const target = this.#add(object, depth + 1);
    const name = nameOf(object);
    if (target === null || name === null) return;
    const fact = `${subject === '' ? '' : `${cut(subject, 200)} — `}${property}: ${name}`;
    this.#facts.addEdge({ name: property, fact, source, target, offset: null });
  }

  /** @returns the key of its node; null: it has none */
  #add(given: JsonObject, depth: number): string | null {
    const id = given['@id'];
    const object = typeof id === 'string' ? (this.#byId.get(id) ?? given) : given;
    const known = this.#added.get(object);
    if (known !== undefined) return known;
    const name = nameOf(object);
    const type = typeOf(object);
    if (depth > MAX_DEPTH) return null;
    const isPage = depth === 0 && PAGE_TYPES.test(type);
    const key = isPage ? this.#document : name === null ? null : this.#addNode(object, name, type);
    this.#added.set(object, key);
    if (key === null) return null;
    for (const [property, value] of Object.entries(object)) {
      if (IGNORED.has(property) || IGNORED_PROPERTIES.test(property)) continue;
      for (const member of Array.isArray(value) ? (value as readonly Json[]) : [value]) {
        if (isObject(member)) this.addRelation(key, property, this.#resolved(member), name ?? '', depth);
      }
    }
    return key;
  }

  #resolved(object: JsonObject): JsonObject {
    const id = object['@id'];
    return typeof id === 'string' ? (this.#byId.get(id) ?? object) : object;
  }

  #addNode(object: JsonObject, name: string, type: string): string | null {
    const id = object['@id'];
    const isGlobal = typeof id === 'string' && /^https?:\/\//.test(id);
    const key = isGlobal ? `id:${id}` : `${type}:${keyOf(name)}`;
    return this.#facts.addNode({ key, name, summary: summaryOf(object), labels: [type], offset: null });
  }
}

function typeOf(object: JsonObject): string {
  const type = object['@type'];
  const first: unknown = Array.isArray(type) ? type[0] : type;
  return typeof first === 'string' && first !== '' ? cut(first.split(/[/#:]/).at(-1)!, 100) || 'Thing' : 'Thing';
}

function nameOf(object: JsonObject): string | null {
  for (const property of ['name', 'headline', 'title'] as const) {
    const value = literal(object[property]);
    if (value !== null) return value;
  }
  return null;
}

function literal(value: Json | undefined): string | null {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return withoutTags(value) || null;
  if (Array.isArray(value)) {
    const texts = (value as readonly Json[]).map((item) => (typeof item === 'object' ? null : literal(item)));
    return texts.filter((text) => text !== null).join(', ') || null;
  }
  return isObject(value) ? literal(value['@value']) : null;
}

function withoutTags(text: string): string {
  return text
    .replace(/<[^<>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
}

function describedBy(object: JsonObject): string {
  const summary = summaryOf(object);
  return summary === null ? '' : `: ${summary}`;
}

/** Its description, and its properties that are not objects. */
function summaryOf(object: JsonObject): string | null {
  const literals = Object.entries(object)
    .filter(([property]) => !IGNORED.has(property) && !IGNORED_PROPERTIES.test(property))
    .flatMap(([property, value]) => {
      const text = literal(value);
      return text === null || /^https?:\/\//.test(text) ? [] : [`${property}: ${cut(text, 200)}`];
    });
  const texts = [literal(object['description']), literals.slice(0, MAX_LITERALS).join('; ')];
  return texts.filter((text) => text !== null && text !== '').join(' ') || null;
}
