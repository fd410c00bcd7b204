import type { IndexFile, Row } from '#libs/platform/textindex/index.ts';

/*
 * Until when edges are true. An edge ends when one of the facts that state it says so, when an `EdgeEnded` says so, or
 * when a later edge gives its single-valued relation another target; whichever comes first. An edge that is withdrawn no
 * longer ends others.
 */

/** The edges of a single-valued relation that are not withdrawn are in the order of `start`, equal ones of `item`. */
const IN_SLOT = `select item, target, start from item
  where slot = ? and exists (select 1 from fact where fact.item = item.item and fact.withdrawn is null)`;
const BEFORE = `${IN_SLOT} and (start, item) < (?, ?) order by start desc, item desc`;
const NEXT = `${IN_SLOT} and (start, item) > (?, ?) and target <> ? order by start, item limit 1`;
/** When the edge became true: at its `valid_at`, or else when it was last learnt; null if that is withdrawn. */
const START = `select coalesce(valid_at, (
    select event.at from fact join event on event.revision = fact.learnt
    where fact.item = item.item and fact.withdrawn is null order by fact.row desc limit 1
  )) from item where item = ?`;

interface SlotEdge {
  readonly item: number;
  readonly slot: string;
  readonly target: string;
  /** Null for an edge without a place among the others yet. */
  readonly start: number | null;
}

/** Records the endings of edges as far as they differ from what is recorded. @param changed items */
export function recordEndings(file: IndexFile, changed: ReadonlySet<number>, revision: number): void {
  const affected = new Set(changed);
  const moved = [...changed].filter((item) => slotEdge(file, item) !== null);
  // An edge that leaves its place, or takes one, affects those that it ended, or ends.
  for (const item of moved) {
    endedBy(file, item, affected);
    const start = file.row(START, item)?.[0] ?? null;
    if (start !== null) file.run('update item set start = ? where item = ?', Number(start), item);
  }
  for (const item of moved) endedBy(file, item, affected);
  for (const item of affected) record(file, { item, endMs: endOf(file, item), revision });
}

/** Adds the edges directly before the edge, as far as they have the same target. */
function endedBy(file: IndexFile, item: number, found: Set<number>): void {
  const { slot, start = null } = slotEdge(file, item) ?? {};
  if (slot === undefined || start === null) return;
  let target: Row[number] | undefined;
  for (const [before, to] of file.rows(BEFORE, slot, start, item)) {
    target ??= to;
    if (to !== target) return;
    found.add(Number(before));
  }
}

/** Null for an edge whose relation may have several targets. */
function slotEdge(file: IndexFile, item: number): SlotEdge | null {
  const [slot, target, start] = file.row('select slot, target, start from item where item = ?', item) ?? [];
  if (typeof slot !== 'string') return null;
  return { item, slot, target: String(target), start: start === null ? null : Number(start) };
}

function endOf(file: IndexFile, item: number): number {
  const sql = `select min(at) from (
    select min(invalid_at) as at from fact where item = ? and withdrawn is null and invalid_at is not null
    union all select ended from item where item = ?)`;
  const ownEnd = file.row(sql, item, item)?.[0] ?? null;
  const { slot, start = null, target } = slotEdge(file, item) ?? {};
  const next =
    slot === undefined || target === undefined || start === null
      ? undefined
      : file.row(NEXT, slot, start, item, target);
  return Math.min(...[ownEnd, next?.[2] ?? null].map((end) => (end === null ? Infinity : Number(end))));
}

function record(
  file: IndexFile,
  { item, endMs, revision }: { readonly item: number; readonly endMs: number; readonly revision: number },
): void {
  const last = file.row('select at from ending where item = ? order by revision desc limit 1', item)?.[0] ?? null;
  const end = endMs === Infinity ? null : endMs;
  if (last === end) return;
  file.run('insert or replace into ending (item, revision, at) values (?, ?, ?)', item, revision, end);
}
