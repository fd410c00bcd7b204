import type { EntityId } from '#libs/kernel/ids.ts';
import type { RedisClient } from '#libs/platform/redis/index.ts';

import type { Document } from './document.ts';
import type { ListKeys } from './read-model.keys.ts';

/** Which part of a list to read: after the member of the cursor, or else from an offset. */
export interface ListPage {
  readonly size: number;
  readonly offset: number;
  readonly after: string | null;
}

/** A page of a list; `last` is the sort key that the next page starts after. */
export interface Page {
  readonly total: number;
  readonly hasNext: boolean;
  readonly last: string | null;
}

/** A page of ready documents. */
export interface DocumentPage extends Page {
  readonly documents: readonly Document[];
  /** Of the documents, in their order. */
  readonly ids: readonly EntityId[];
}

/** A page of folded states. */
export interface StatePage<State> extends Page {
  readonly states: readonly State[];
}

/** A list of one organization's entities, and the facets to filter it by. */
export interface ListFilter {
  readonly category: string;
  /** Null for the list of organizations: each of them belongs to itself. */
  readonly organizationId: EntityId | null;
  readonly facets: readonly [string, ...string[]];
}

export interface ListResult {
  /** Newest first. */
  readonly members: readonly string[];
  readonly total: number;
  readonly hasNext: boolean;
}

/** Members looked at in one step while several facets are intersected. */
const STEP = 200;
const IDS_OF_PAGE = 1_000;

/**
 * Members are `<created at>_<id>`, so that their order is that of creation. Both parts never change,
 * which is what keeps a cursor stable while rows are added.
 */
export function listMember(createdAt: string, id: string): string {
  return `${createdAt}_${id}`;
}

/** The id in a member; timestamps hold no underscore, ids may. */
export function idOfMember(member: string): string {
  return member.slice(member.indexOf('_') + 1);
}

/**
 * Reads one page of the members that have **all** of `facets`, newest first.
 * With one facet the cost is that of the page; with several, that of the rarest facet.
 *
 * @throws `Fault` `store_unavailable`
 */
export async function readList(
  redis: RedisClient,
  list: ListKeys,
  facets: readonly [string, ...string[]],
  page: ListPage,
): Promise<ListResult> {
  const keys = facets.map((facet) => `${list.indexPrefix}${facet}`);
  // The intersection of one set with nothing is counted member by member; its own count is known.
  const [only, ...more] = keys;
  const total = await redis.send(keys[0] ?? '', (node) =>
    more.length === 0 ? node.zcard(only ?? '') : node.zintercard(keys.length, ...keys),
  );
  if (total === 0) return { members: [], total, hasNext: false };
  const [first, ...others] = await rarestFirst(redis, keys);
  const members =
    others.length === 0 && page.after === null
      ? await redis.send(first ?? '', (node) => node.zrevrange(first ?? '', page.offset, page.offset + page.size))
      : await scan(redis, first ?? '', others, page);
  return { members: members.slice(0, page.size), total, hasNext: members.length > page.size };
}

/** Ids of all members that have all of `facets`, newest first. @throws `Fault` `store_unavailable` */
export async function readIds(
  redis: RedisClient,
  list: ListKeys,
  facets: readonly [string, ...string[]],
): Promise<EntityId[]> {
  const ids: EntityId[] = [];
  let page: ListResult | undefined;
  do {
    const after = page?.members.at(-1) ?? null;
    page = await readList(redis, list, facets, { size: IDS_OF_PAGE, offset: 0, after });
    ids.push(...page.members.map(idOfMember));
  } while (page.hasNext);
  return ids;
}

async function rarestFirst(redis: RedisClient, keys: readonly string[]): Promise<string[]> {
  if (keys.length === 1) return [...keys];
  const counts = await Promise.all(keys.map((key) => redis.send(key, (node) => node.zcard(key))));
  return [...keys].sort((a, b) => (counts[keys.indexOf(a)] ?? 0) - (counts[keys.indexOf(b)] ?? 0));
}

/** Walks `key` downwards from the cursor, keeping what is in all of `others`, until the page is full. */
async function scan(redis: RedisClient, key: string, others: readonly string[], page: ListPage): Promise<string[]> {
  const wanted = page.size + 1;
  let toSkip = page.after === null ? page.offset : 0;
  let max = page.after === null ? '+' : `(${page.after}`;
  // What is in one set alone needs no more than the page.
  const size = others.length === 0 ? wanted + toSkip : STEP;
  const kept: string[] = [];
  while (kept.length < wanted) {
    const from = max;
    const step = await redis.send(key, (node) => node.zrange(key, from, '-', 'BYLEX', 'REV', 'LIMIT', 0, size));
    const matching = await keepMembersOf(redis, step, others);
    kept.push(...matching.slice(toSkip));
    toSkip = Math.max(0, toSkip - matching.length);
    const last = step.at(-1);
    if (last === undefined || step.length < size) break;
    max = `(${last}`;
  }
  return kept.slice(0, wanted);
}

async function keepMembersOf(
  redis: RedisClient,
  members: readonly string[],
  others: readonly string[],
): Promise<string[]> {
  if (members.length === 0 || others.length === 0) return [...members];
  const scores = await Promise.all(others.map((other) => redis.send(other, (node) => node.zmscore(other, ...members))));
  return members.filter((_, index) => scores.every((ofOne) => ofOne[index] !== null));
}
