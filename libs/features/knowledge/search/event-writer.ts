/** Turns the events of a graph into rows of its index. What is written follows from the events alone. */
import {
  type IndexFile,
  nameNumber,
  nameParts,
  parseRow,
  TermWriter,
  wordsOf,
} from '#libs/platform/textindex/index.ts';

import { normalized } from '../facts.ts';
import type { FactsLearned, GraphEvent } from '../graph.ts';

import { EDGE, type Kind, NODE } from './columns.ts';
import { embeddedText, textKey } from './embedded-text.ts';
import { counted, FIELDS } from './fact-scores.ts';
import { recordEndings } from './edge-endings.ts';
import { descriptionAt, type GraphDescription } from './records.ts';

/** An event as the writer needs it; null in place of one that an older version does not know. */
export interface IndexedEvent {
  readonly revision: number;
  readonly id: string;
  readonly atMs: number;
  readonly event: GraphEvent | null;
}

/** Stated facts of one item that are compared with those of a new one. */
const MAX_COMPARED = 50;

/** Of a text in words: of 16 bits. */
const MAX_LENGTH = 65_535;

/** Items are numbered from 0 without gaps. */
const NEXT_ITEM = '(select coalesce(max(item), -1) + 1 from item)';

type Node = FactsLearned['nodes'][number];
type Edge = FactsLearned['edges'][number];

/** The statement of a fact about its node or edge. */
interface Content {
  readonly name: string | null;
  readonly summary?: string | null;
  readonly labels?: readonly string[];
  readonly fact?: string;
  readonly source?: string;
  readonly target?: string;
  readonly validAt?: string | null;
  readonly invalidAt?: string | null;
}

interface Fact {
  readonly item: number;
  readonly kind: Kind;
  readonly content: Content;
  readonly passage: string | null;
}

function mergedContent(old: Content, content: Content): Content {
  const labels = [...new Set([...(old.labels ?? []), ...(content.labels ?? [])])];
  return {
    ...content,
    ...(content.summary === null && { summary: old.summary ?? null }),
    ...(content.invalidAt === null && { invalidAt: old.invalidAt ?? null }),
    ...(content.labels && { labels }),
  };
}

/**
 * Appends events to the index, in one transaction. Does nothing if another process was faster; the caller then sees its
 * progress.
 *
 * @param events of consecutive revisions
 */
export function writeEvents(file: IndexFile, events: readonly IndexedEvent[]): void {
  file.write(() => {
    const stored = Number(file.row('select revision from progress')?.[0]);
    const unseen = events.filter(({ revision }) => revision > stored);
    const last = unseen.at(-1);
    if (last === undefined || unseen[0]?.revision !== stored + 1) return;
    const terms = new TermWriter(file, Number(file.row('select coalesce(max(row), -1) from fact')?.[0]) + 1);
    let latestMs = Number(file.row('select at from event where revision = ?', stored)?.[0] ?? -Infinity);
    for (const event of unseen) {
      latestMs = Math.max(latestMs, event.atMs);
      new EventWriter(file, terms, { ...event, atMs: latestMs }).write();
    }
    terms.flush();
    file.run('update progress set revision = ?, event = ?', last.revision, last.id);
  });
}

class EventWriter {
  readonly #file: IndexFile;
  readonly #terms: TermWriter;
  readonly #event: IndexedEvent;
  /** Edges whose truth the event may have changed. */
  readonly #edges = new Set<number>();

  constructor(file: IndexFile, terms: TermWriter, event: IndexedEvent) {
    this.#file = file;
    this.#terms = terms;
    this.#event = event;
  }

  write(): void {
    const { revision, atMs, event } = this.#event;
    this.#file.run('insert into event (revision, at) values (?, ?)', revision, atMs);
    if (event?.type === 'GraphCreated.v1' || event?.type === 'GraphRenamed.v1') this.#describe(event.data);
    else if (event?.type === 'GraphDescribed.v1') this.#describe(event.data);
    else if (event?.type === 'FactsLearned.v1') this.#learn(event.data);
    else if (event?.type === 'FactsWithdrawn.v1') this.#withdraw(event.data.documentId, event.data.beforeRevision);
    else if (event?.type === 'EdgeEnded.v1') this.#end(event.data.edgeId, Date.parse(event.data.invalidAt));
    recordEndings(this.#file, this.#edges, revision);
  }

  #describe(changed: Partial<GraphDescription>): void {
    const { name, description } = { ...descriptionAt(this.#file, this.#event.revision), ...changed };
    const sql = 'insert into described (revision, name, description) values (?, ?, ?)';
    this.#file.run(sql, this.#event.revision, name, description);
  }

  #learn({ source, passages, nodes, edges }: FactsLearned): void {
    const origin = source === null ? null : this.#originOf(source);
    // Content of a document that was changed or deleted before its facts arrived.
    if (origin?.isWithdrawn === true) return;
    const keys = passages.map((): number | null => null);
    const passageKey = (index: number | null): number | null => {
      const text = index === null ? undefined : passages[index];
      if (index === null || text === undefined) return null;
      return (keys[index] ??= this.#file.run('insert into passage (text) values (?)', text));
    };
    const state = (fact: Omit<Fact, 'passage'>, { passage }: { readonly passage: number | null }): void =>
      this.#state(origin, () => passageKey(passage), {
        ...fact,
        passage: passage === null ? null : (passages[passage] ?? null),
      });
    for (const node of nodes) {
      const { name, summary, labels } = node;
      state({ item: this.#itemOf(node), kind: NODE, content: { name, summary, labels } }, node);
    }
    for (const edge of edges) {
      const { name, fact, source: from, target, validAt, invalidAt } = edge;
      const item = this.#edgeOf(edge);
      this.#edges.add(item);
      state({ item, kind: EDGE, content: { name, fact, source: from, target, validAt, invalidAt } }, edge);
    }
  }

  #state(origin: Origin | null, passageKey: () => number | null, { item, passage, ...fact }: Fact): void {
    const { revision } = this.#event;
    let { content } = fact;
    for (const [key, json, text] of this.#statedBefore(item, origin)) {
      // Facts without a document have one current version, which keeps what a new one does not say.
      if (origin === null) content = mergedContent(parseRow(json) as Content, content);
      const isStated = json === JSON.stringify(content) && text === passage;
      if (isStated && !(origin === null && this.#isSuperseded(item, content))) return;
      if (origin === null) this.#file.run('update fact set withdrawn = ? where row = ?', revision, Number(key));
    }
    // The sentence of an edge says it all: with the passage, every edge of it would match.
    const searched = fact.kind === EDGE || passage === null ? '' : `${passage} ${origin?.name ?? ''}`;
    const [name, details] = nameParts(content.name ?? '');
    const words = {
      name: wordsOf(name),
      summary: wordsOf(`${details} ${content.fact ?? content.summary ?? ''}`),
      passage: wordsOf(searched),
    };
    const row = this.#terms.nextRow();
    this.#file.run(
      'insert into fact (row, item, document, origin, passage, learnt, name_words, words, invalid_at, text, named) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
      row,
      item,
      origin?.document ?? null,
      origin?.key ?? null,
      passageKey(),
      revision,
      Math.min(words.name.length, MAX_LENGTH),
      Math.min(words.summary.length + words.passage.length, MAX_LENGTH),
      timeOf(content.invalidAt ?? null),
      textKey(embeddedText({ ...content, kind: fact.kind, passage })),
      fact.kind === NODE ? nameNumber(name) : null,
    );
    this.#file.run('insert into content (row, json) values (?, ?)', row, JSON.stringify(content));
    this.#terms.add(row, countsOf(words));
  }

  /** Whether another edge of the relation has ended it since it was learnt: it is true again when it is stated again. */
  #isSuperseded(item: number, { validAt = null, invalidAt = null }: Content): boolean {
    if (validAt !== null || invalidAt !== null) return false;
    const sql = `select at from ending join item using (item) where item = ? and slot is not null
      order by revision desc limit 1`;
    return typeof this.#file.row(sql, item)?.[0] === 'number';
  }

  /** Facts that the same content of the same document states about the item already. */
  #statedBefore(item: number, origin: Origin | null) {
    const known = this.#file.rows(
      `select fact.row, json, passage.text from fact indexed by fact_stated join content using (row)
         left join origin using (origin) left join passage using (passage)
       where fact.item = ? and fact.document is ? and fact.withdrawn is null and origin.revision is ?
       order by fact.row desc limit ${MAX_COMPARED}`,
      item,
      origin?.document ?? null,
      origin?.revision ?? null,
    );
    return [...known];
  }

  #withdraw(documentId: string, beforeRevision: number | null): void {
    const { revision } = this.#event;
    const [document = null, known = -1] = this.#documentOf(documentId);
    const before = beforeRevision ?? this.#afterAll(Number(document));
    if (before > Number(known)) {
      this.#file.run('update document set withdrawn_before = ? where document = ?', before, Number(document));
    }
    const facts = this.#file.rows(
      `select fact.row, item, kind from fact join item using (item) join origin using (origin)
       where fact.document = ? and fact.withdrawn is null and origin.revision < ?`,
      Number(document),
      before,
    );
    for (const [row, item, kind] of facts) {
      this.#file.run('update fact set withdrawn = ? where row = ?', revision, Number(row));
      if (kind === EDGE) this.#edges.add(Number(item));
    }
  }

  /** A revision greater than that of all content that facts came from. */
  #afterAll(document: number): number {
    return Number(this.#file.row('select max(revision) from origin where document = ?', document)?.[0] ?? -1) + 1;
  }

  #end(edgeId: string, atMs: number): void {
    const [item, kind] = this.#file.row('select item, kind from item where uuid = ?', edgeId) ?? [];
    if (kind !== EDGE) return;
    this.#file.run('update item set ended = ? where item = ?', atMs, Number(item));
    this.#edges.add(Number(item));
  }

  #itemOf({ id }: Node): number {
    const known = this.#file.row('select item from item where uuid = ?', id)?.[0];
    if (known !== undefined) return Number(known);
    const sql = `insert into item (item, uuid, kind, learnt) values (${NEXT_ITEM}, ?, ?, ?)`;
    return this.#file.run(sql, id, NODE, this.#event.revision);
  }

  #edgeOf({ id, source, target, name, validAt, isSingleValued }: Edge): number {
    const slot = isSingleValued ? JSON.stringify([source, name === null ? null : normalized(name)]) : null;
    const known = this.#file.row('select item from item where uuid = ?', id)?.[0];
    if (known !== undefined) {
      this.#file.run('update item set slot = coalesce(slot, ?) where item = ?', slot, Number(known));
      return Number(known);
    }
    const sql = `insert into item (item, uuid, kind, learnt, valid_at, slot, target) values (${NEXT_ITEM}, ?, ?, ?, ?, ?, ?)`;
    return this.#file.run(sql, id, EDGE, this.#event.revision, timeOf(validAt), slot, target);
  }

  /** The document's key, and the revision before which its content is withdrawn. */
  #documentOf(id: string): readonly [number, number] {
    const known = this.#file.row('select document, withdrawn_before from document where id = ?', id);
    if (known !== undefined) return [Number(known[0]), Number(known[1])];
    return [this.#file.run('insert into document (id, withdrawn_before) values (?, -1)', id), -1];
  }

  #originOf({ documentId, revision, name, url }: NonNullable<FactsLearned['source']>): Origin {
    const [document, withdrawnBefore] = this.#documentOf(documentId);
    const sql = 'insert into origin (document, revision, name, url) values (?, ?, ?, ?)';
    const key = this.#file.run(sql, document, revision, name, url);
    return { key, document, revision, name, isWithdrawn: revision < withdrawnBefore };
  }
}

interface Origin {
  readonly key: number;
  readonly document: number;
  readonly revision: number;
  readonly name: string;
  readonly isWithdrawn: boolean;
}

/** Unix milliseconds; null for none. */
function timeOf(at: string | null): number | null {
  return at === null ? null : Date.parse(at);
}

/** Packed counts by word. */
function countsOf(words: Readonly<Record<keyof typeof FIELDS, readonly string[]>>): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const name of ['name', 'summary', 'passage'] as const) {
    for (const word of words[name]) counts.set(word, counted(counts.get(word) ?? 0, FIELDS[name]));
  }
  return counts;
}
