/* What research searches for, and which of the results it keeps. */
import { admitText } from '#libs/kernel/text.ts';
import { wordsOf } from '#libs/platform/textindex/index.ts';

import type { FoundEdge, FoundNode, FoundSource } from '../search/index.ts';
import type { Finding, Plan, Source } from './finding.ts';
import { subjectWords, Terms } from './terms.ts';

const MAX_QUESTIONS = 6;
/** Findings of one step, which are one event. */
const MAX_NEW = 24;
/** Of one query. */
const MAX_FINDINGS = 120;
const MAX_SOURCES = 2;
const MAX_TEXT = 1_500;
const MAX_NAME = 256;
/** Different words, without numbers, of a text that is recognised by most of them. A shorter one has to have the same. */
const MIN_LONG_WORDS = 12;
/** Words of the longer one of two texts that both have. */
const SHARED_WORDS = 0.9;
/** A node of a document, rather than a thing that documents are about. */
const PARTS_OF_DOCUMENTS = new Set(['Document', 'Section', 'Link']);

/**
 * The query; its parts between words without a subject, if there are several; and the names in it that nodes of the
 * graphs have.
 */
export function questionsOf(query: string, names: readonly string[]): string[] {
  const subjects = new Set(subjectWords(query));
  const questions = [query.trim()];
  const add = (question: string): void => {
    const words = subjectWords(question).toSorted().join(' ');
    const isKnown = questions.some((known) => subjectWords(known).toSorted().join(' ') === words);
    if (questions.length < MAX_QUESTIONS && !isKnown) questions.push(question);
  };
  for (const part of partsOf(query, subjects)) add(part);
  for (const name of names) {
    const words = subjectWords(name);
    if (words.length > 0 && words.every((word) => subjects.has(word))) add(name);
  }
  return questions;
}

/** Runs of at least two subjects. */
function partsOf(query: string, subjects: ReadonlySet<string>): string[] {
  const parts: string[][] = [[]];
  for (const token of query.split(/(\s+|[,;:?!()]+)/u)) {
    if (/^\s*$/u.test(token)) continue;
    const isSubject = subjectWords(token).some((word) => subjects.has(word)) && !/^[,;:?!()]+$/u.test(token);
    if (isSubject) parts.at(-1)?.push(token);
    else parts.push([]);
  }
  return parts.filter(({ length }) => length > 1).map((words) => words.join(' '));
}

/** A node or edge of one graph. */
export type Found = (FoundNode | FoundEdge) & { readonly graphId: string };

/** Names of nodes by their ids. */
export type NodeNames = ReadonlyMap<string, string>;

/** The record of a node or edge. */
export function findingOf(found: Found, hop: number, names: NodeNames): Finding {
  const { graphId, uuid } = found;
  const sources = found.sources.slice(0, MAX_SOURCES).map(sourceOf);
  if (!('fact' in found)) {
    const summary = found.summary === null ? null : cut(found.summary, MAX_TEXT);
    return {
      graphId,
      uuid,
      name: cut(found.name, MAX_NAME),
      labels: [...found.labels],
      summary,
      edge: null,
      sources,
      hop,
    };
  }
  const target = cut(names.get(found.target_node_uuid) ?? '', MAX_NAME);
  const name = cut(names.get(found.source_node_uuid) ?? '', MAX_NAME);
  const edge = { fact: cut(found.fact, MAX_TEXT), name: found.name && cut(found.name, MAX_NAME), target };
  return { graphId, uuid, name, labels: [], summary: null, edge, sources, hop };
}

function sourceOf({ document_id, name, url, passage }: FoundSource): Source {
  return { documentId: document_id, name: cut(name, MAX_NAME), url, passage: passage && cut(passage, MAX_TEXT) };
}

/** Orders findings: those with most of the query first. */
export function byShare(findings: readonly Finding[], terms: Terms): Finding[] {
  const shares = new Map(findings.map((one) => [one, terms.share(textOf(one)) * 0.5 ** one.hop]));
  return findings.toSorted((one, other) => (shares.get(other) ?? 0) - (shares.get(one) ?? 0));
}

/** The new ones of what a step has found, the best first; last those that repeat other ones. */
export function newFindings(known: readonly Finding[], found: readonly Finding[], plan: Plan): Finding[] {
  const terms = new Terms(plan.terms);
  const seen = new Set(known.map(keyOf));
  const fresh = found.filter((one) => {
    const isNew = !seen.has(keyOf(one));
    seen.add(keyOf(one));
    return isNew && !isNavigation(one);
  });
  const room = Math.min(MAX_NEW, MAX_FINDINGS - known.length);
  const ranked = byShare(fresh, terms);
  // A text of every page of a site would leave no room for others.
  const others = new Set(withoutRepetitions([...known, ...ranked]));
  return [...ranked.filter((one) => others.has(one)), ...ranked.filter((one) => !others.has(one))].slice(
    0,
    Math.max(0, room),
  );
}

/**
 * Whether a search result has enough of the query: more than half of one with two words, less of one with many. A thing
 * that the query names is relevant whatever else the query asks.
 */
export function isRelevant(finding: Finding, plan: Plan): boolean {
  if (isNamed(finding, plan)) return true;
  const least = Math.max(0.2, Math.min(0.7, 1.7 / plan.terms.length));
  return new Terms(plan.terms).share(textOf(finding)) >= least;
}

function isNamed(finding: Finding, { terms }: Plan): boolean {
  if (finding.edge !== null || !isThing(finding)) return false;
  const asked = new Set(terms.map(({ word, correction }) => correction ?? word));
  const words = subjectWords(finding.name);
  return words.length > 0 && words.every((word) => asked.has(word));
}

export function textOf({ name, summary, edge, sources }: Finding): string {
  return [name, summary, edge?.name, edge?.fact, sources[0]?.passage].filter(Boolean).join('\n');
}

/** The passage that the finding is, if it is one: facts and things may share theirs. */
function passageOf(finding: Finding): string | null {
  if (finding.edge !== null || isThing(finding)) return null;
  return finding.sources[0]?.passage ?? finding.summary;
}

/** Drops findings that say nearly the same as one before them. */
export function withoutRepetitions(findings: readonly Finding[]): Finding[] {
  const repetitions = new Repetitions();
  return findings.filter((finding) => {
    const passage = passageOf(finding);
    return passage === null || !repetitions.repeats(passage);
  });
}

/** Nodes whose edges are followed next: the things that the last hop has found. */
export function seedsOf(findings: readonly Finding[], hop: number, limit: number): Finding[] {
  return findings.filter((one) => one.edge === null && one.hop === hop - 1 && isThing(one)).slice(0, limit);
}

export function isThing({ labels }: Finding): boolean {
  return !labels.some((label) => PARTS_OF_DOCUMENTS.has(label));
}

/** The table of contents, and links: the sections that have them are findings themselves. */
function isNavigation({ edge, labels }: Finding): boolean {
  return edge?.name === 'has section' || edge?.name === 'links to' || labels.includes('Link');
}

function keyOf({ graphId, uuid }: Finding): string {
  return `${graphId} ${uuid}`;
}

export function cut(text: string, max: number): string {
  return text.length <= max ? text : `${admitText(text, max - 1).trimEnd()}…`;
}

/**
 * Recognises passages that say nearly the same: copies of a page, and texts that occur on every page of a site. Case
 * and punctuation do not count, nor do numbers in long texts.
 */
class Repetitions {
  readonly #short = new Set<string>();
  readonly #long: ReadonlySet<string>[] = [];

  /** Whether a text before this one says nearly the same. Otherwise, later texts are compared with this one as well. */
  repeats(text: string): boolean {
    const all = wordsOf(text);
    const words = new Set(all.filter((word) => !/\d/.test(word)));
    if (words.size < MIN_LONG_WORDS) {
      const known = this.#short.size;
      return this.#short.add(all.join(' ')).size === known;
    }
    if (this.#long.some((other) => areNearlyEqual(words, other))) return true;
    this.#long.push(words);
    return false;
  }
}

function areNearlyEqual(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  const least = SHARED_WORDS * Math.max(one.size, other.size);
  return Math.min(one.size, other.size) >= least && one.intersection(other).size >= least;
}
