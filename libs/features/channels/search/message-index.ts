import {
  type IndexFile,
  inMeanLength,
  queryWordCounts,
  rarityOf,
  saturated,
  type Variant,
  variantsOf,
  visitPostings,
} from '#libs/platform/textindex/index.ts';

import {
  type ChannelChanges,
  type KnownChannel,
  MessageColumns,
  openMessageFile,
  writeChanges,
} from './message-file.ts';
import { BestResults, compareResults, type ResultKey } from './result-order.ts';

/** Words that are joined by signs, as `Wi-Fi`: the first of its words is the whole. */
const COMPOUND = /[\p{L}\p{N}][-.&‐‑][\p{L}\p{N}]/u;
/** Different words of a query that count. */
const MAX_WORDS = 16;
/** Postings after which a query looks up no further words, but is refused: some 2 s. */
const MAX_POSTINGS = 5_000_000;

export const SORTS = ['relevance', 'newest'] as const;

export interface MessageQuestion {
  readonly query: string;
  /** The channels that may be read. */
  readonly channelIds: readonly string[];
  /** Exclusive. */
  readonly afterMs: number | null;
  readonly beforeMs: number | null;
  readonly sort: (typeof SORTS)[number];
  readonly offset: number;
  readonly limit: number;
  /** The last result of the page before, and the time up to which that search looked. */
  readonly after: (ResultKey & { readonly upToMs: number }) | null;
}

export interface FoundMessages {
  readonly total: number;
  readonly hits: readonly ResultKey[];
  readonly hasNext: boolean;
  /** Later messages are not part of further pages. */
  readonly upToMs: number;
  /** Words of messages that count as words of the query, for highlights. */
  readonly terms: readonly string[];
  /** Channels with any message that has a word of the query. */
  readonly channelIds: readonly string[];
}

/** The query reads more of the index than it may. */
export class TooManyMatches extends Error {
  override readonly name = 'TooManyMatches';
}

/** Memory that queries of a thread use in turn; zero between them. */
const scratch = { groups: new Uint8Array(), best: new Float32Array(), scores: new Float64Array() };

/** The index of the messages of one organization, in a file that other processes may read and write. Errors: those of SQLite. */
export class MessageIndex {
  readonly #file: IndexFile;
  readonly #columns = new MessageColumns();

  constructor(path: string) {
    this.#file = openMessageFile(path);
  }

  get bytes(): number {
    return this.#columns.bytes + this.#file.cacheBytes;
  }

  close(): void {
    this.#file.close();
  }

  write(changes: ChannelChanges): void {
    writeChanges(this.#file, changes);
  }

  /** The channels of which the index lacks events up to `heads`, and how far it reflects each. */
  stale(heads: readonly (readonly [id: string, revision: number])[]): (readonly [id: string, known: KnownChannel])[] {
    return this.#read(({ channels }) =>
      heads.flatMap(([id, revision]) => {
        const known = channels.get(id) ?? { channel: -1, revision: -1, event: '' };
        return known.revision < revision ? [[id, known] as const] : [];
      }),
    );
  }

  /** @throws TooManyMatches */
  search(question: MessageQuestion): FoundMessages {
    return this.#read((columns) => new MessageQuery(this.#file, columns, question).answer());
  }

  #read<T>(work: (columns: MessageColumns) => T): T {
    return this.#file.read(() => {
      this.#columns.refresh(this.#file);
      return work(this.#columns);
    });
  }
}

/** Rows of a term that the query may see, with its counts there. */
interface Occurrences {
  readonly rows: number[];
  readonly counts: number[];
  /** Whether any of the rows is a message as it is now. */
  isCurrent: boolean;
}

/** A part of a query between spaces: a message must have `needed` of its words. */
interface Group {
  readonly words: readonly string[];
  readonly needed: number;
}

/**
 * A search. Channels that the question does not name have no effect on the answer: also which inflections,
 * longer words and corrections count, and how rare a word is, follow from the messages that may be seen.
 */
class MessageQuery {
  readonly #file: IndexFile;
  readonly #columns: MessageColumns;
  readonly #question: MessageQuestion;
  /** By key of a channel. */
  readonly #isReadable: Uint8Array;
  readonly #upToMs: number;
  readonly #messages: number;
  readonly #perWord: number;
  readonly #known = new Map<number, Occurrences>();
  readonly #terms = new Set<number>();
  readonly #touched: number[] = [];
  #postings = 0;

  constructor(file: IndexFile, columns: MessageColumns, question: MessageQuestion) {
    this.#file = file;
    this.#columns = columns;
    this.#question = question;
    this.#isReadable = new Uint8Array(columns.channelIds.length + 1);
    for (const id of question.channelIds) {
      const known = columns.channels.get(id);
      if (known !== undefined) this.#isReadable[known.channel] = 1;
    }
    const limitMs = question.after?.upToMs ?? Infinity;
    let [messages, words, latestMs] = [0, 1, -Infinity];
    for (let row = 0; row < columns.rows; row++) {
      if (this.#isReadable[columns.channel[row]!] === 0 || columns.atMs[row]! > limitMs) continue;
      messages += 1;
      words += columns.words[row]!;
      latestMs = Math.max(latestMs, columns.atMs[row]!);
    }
    this.#messages = messages;
    this.#perWord = messages / words;
    this.#upToMs = question.after?.upToMs ?? latestMs;
    if (columns.rows > scratch.groups.length) {
      const size = Math.ceil(columns.rows * 1.25);
      Object.assign(scratch, {
        groups: new Uint8Array(size),
        best: new Float32Array(size),
        scores: new Float64Array(size),
      });
    }
  }

  answer(): FoundMessages {
    const { offset, limit, after, sort } = this.#question;
    const groups = groupsOf(this.#question.query);
    try {
      // 1. Count for each message the groups that it has all words of.
      for (const [index, group] of groups.entries()) this.#match(group, index);
      // 2. The messages that have all groups.
      const { groups: matched, scores } = scratch;
      const matches = this.#touched.filter((row) => matched[row] === groups.length && this.#isFound(row));
      // 3. The best of them after the last result of the page before.
      const isRanked = sort === 'relevance';
      const keyOf = (row: number): ResultKey => ({
        score: isRanked ? scores[row]! : 0,
        atMs: this.#columns.atMs[row]!,
        sequence: this.#columns.sequence[row]!,
        channelId: this.#columns.channelIds[this.#columns.channel[row]!] ?? '',
      });
      const best = new BestResults(offset + limit + 1);
      for (const row of matches) {
        const key = keyOf(row);
        if (after === null || compareResults(after, key) < 0) best.add(key);
      }
      const { results } = best;
      const hits = results.slice(offset, offset + limit);
      const hasNext = results.length > offset + limit;
      const total = groups.length === 0 ? 0 : matches.length;
      return { total, hits, hasNext, upToMs: this.#upToMs, terms: this.#termTexts(), channelIds: this.#channels() };
    } finally {
      // 4. Leave the scratch memory as it was, for the next query.
      for (const row of this.#touched) scratch.groups[row] = scratch.scores[row] = 0;
    }
  }

  #match({ words, needed }: Group, index: number): void {
    const { groups, best, scores } = scratch;
    // Of groups with several words.
    const counts = new Map<number, number>();
    for (const word of words) {
      const having: number[] = [];
      for (const { term, weight } of this.#variantsOf(word)) {
        this.#terms.add(term);
        const { rows, counts: occurrences } = this.#occurrencesOf(term);
        for (const [at, row] of rows.entries()) {
          const length = this.#columns.words[row]! * this.#perWord;
          const match = weight * saturated(inMeanLength(occurrences[at]!, length));
          if (best[row] === 0) having.push(row);
          if (match > best[row]!) best[row] = match;
        }
      }
      const rarity = rarityOf(having.length, this.#messages);
      for (const row of having) {
        if (groups[row] === 0 && scores[row] === 0) this.#touched.push(row);
        scores[row]! += rarity * best[row]!;
        best[row] = 0;
        if (words.length > 1) counts.set(row, (counts.get(row) ?? 0) + 1);
        else if (groups[row] === index) groups[row] = index + 1;
      }
    }
    // Messages that lack an earlier group stay behind.
    for (const [row, count] of counts) if (count >= needed && groups[row] === index) groups[row] = index + 1;
  }

  #variantsOf(word: string): readonly Variant[] {
    return variantsOf(this.#file, word, this.#columns.rows - 1, (term) => this.#occurrencesOf(term).isCurrent);
  }

  #occurrencesOf(term: number): Occurrences {
    const known = this.#known.get(term);
    if (known !== undefined) return known;
    if (this.#postings > MAX_POSTINGS) throw new TooManyMatches('the query reads more of the index than it may');
    const { channel, atMs, isCurrent } = this.#columns;
    const found: Occurrences = { rows: [], counts: [], isCurrent: false };
    const lastRow = this.#columns.rows - 1;
    this.#postings += visitPostings(this.#file, { term, lastRow }, (row, count) => {
      if (this.#isReadable[channel[row]!] === 0 || atMs[row]! > this.#upToMs) return;
      found.rows.push(row);
      found.counts.push(count);
      if (isCurrent[row] === 1) found.isCurrent = true;
    });
    this.#known.set(term, found);
    return found;
  }

  #isFound(row: number): boolean {
    const { afterMs, beforeMs } = this.#question;
    const { atMs, isCurrent } = this.#columns;
    if (isCurrent[row] === 0 || (afterMs !== null && atMs[row]! <= afterMs)) return false;
    return beforeMs === null || atMs[row]! < beforeMs;
  }

  #termTexts(): string[] {
    return [...this.#terms].map((term) => String(this.#file.row('select term from term where id = ?', term)?.[0]));
  }

  #channels(): string[] {
    const keys = new Set(this.#touched.map((row) => this.#columns.channel[row]!));
    return [...keys].map((key) => this.#columns.channelIds[key] ?? '');
  }
}

/** All words must occur; of a compound and its parts, the whole or the parts. Empty for a query without words. */
function groupsOf(query: string): Group[] {
  const wanted = new Set([...queryWordCounts(query).keys()].slice(0, MAX_WORDS));
  const groups: Group[] = [];
  for (const chunk of query.split(/\s+/)) {
    const words = [...queryWordCounts(chunk).keys()].filter((word) => wanted.delete(word));
    if (words.length === 0) continue;
    groups.push({ words, needed: COMPOUND.test(chunk) ? Math.max(1, words.length - 1) : words.length });
  }
  return groups;
}
