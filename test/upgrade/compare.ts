/** Compares two readings of the same address: what came later may have more members, and nothing else may differ. */
import { asRecord } from '#test/support/log-reader.ts';
import type { Reading, Readings } from './reads.ts';

export interface Difference {
  /** Where in the JSON, such as `items[].cost`; empty: the whole reading. */
  readonly path: string;
  readonly former: unknown;
  readonly current: unknown;
}

/** @param added gets the paths of members that only `current` has */
export function differences(former: string, current: string, added: Set<string>): Difference[] {
  if (former === current) return [];
  const [left, right] = [parsed(former), parsed(current)];
  if (left === undefined || right === undefined) return [{ path: '', former, current }];
  const found: Difference[] = [];
  const common = withoutAdditions(left, right, '', found, added);
  if (found.length === 0 && JSON.stringify(common) !== JSON.stringify(left)) {
    found.push({ path: '(order of members)', former, current });
  }
  return found;
}

/** @returns `current` without members that `former` lacks */
function withoutAdditions(
  former: unknown,
  current: unknown,
  path: string,
  found: Difference[],
  added: Set<string>,
): unknown {
  if (Array.isArray(former) && Array.isArray(current) && former.length === current.length) {
    return former.map((value, index) => withoutAdditions(value, current[index], `${path}[]`, found, added));
  }
  if (!isObject(former) || !isObject(current)) {
    if (JSON.stringify(former) !== JSON.stringify(current)) found.push({ path, former, current });
    return current;
  }
  const at = (name: string): string => (path === '' ? name : `${path}.${name}`);
  for (const name of Object.keys(former)) {
    if (!(name in current)) found.push({ path: at(name), former: former[name], current: undefined });
  }
  const kept: [string, unknown][] = [];
  for (const [name, value] of Object.entries(current)) {
    if (name in former) kept.push([name, withoutAdditions(former[name], value, at(name), found, added)]);
    else added.add(at(name));
  }
  return Object.fromEntries(kept);
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** JSON, lines of JSON and server-sent events as values; undefined: anything else. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const lines = text.split('\n').filter((line) => line !== '');
    if (lines.length === 0) return undefined;
    try {
      return lines.map((line) => (line.startsWith('{') ? asRecord(JSON.parse(line)) : { line: eventLine(line) }));
    } catch {
      return undefined;
    }
  }
}

function eventLine(line: string): unknown {
  return line.startsWith('data: {') ? JSON.parse(line.slice('data: '.length)) : line;
}

/**
 * Lists what differs, grouped by route and place.
 * @param accepted parts of groups, or of all that differs in them, whose difference is meant
 * @returns whether all differences are accepted
 */
export function reportDifferences(
  title: string,
  before: Readings,
  after: Readings,
  accepted: readonly string[],
  say: (line: string) => void,
): boolean {
  const added = new Set<string>();
  const groups = new Map<string, string[]>();
  let equal = 0;
  for (const [key, former] of before) {
    const found = differencesOf(former, after.get(key), added);
    if (found.length === 0) equal += 1;
    for (const difference of found) {
      const group = `${routeOf(key)} ${difference.path}`;
      const detail = `${key}: ${shortened(difference.former)} -> ${shortened(difference.current)}`;
      groups.set(group, [...(groups.get(group) ?? []), detail]);
    }
  }
  say(`\n${title}: ${equal} of ${before.size} readings are equal`);
  if (added.size > 0) say(`members that were added: ${[...added].toSorted().join(', ')}`);
  let all = true;
  for (const [group, details] of groups) {
    const meant = accepted.some((part) => group.includes(part) || details.every((detail) => detail.includes(part)));
    all &&= meant;
    say(`${meant ? 'accepted ' : 'DIFFERENT'} ${group} (${details.length})\n    ${details.slice(0, 2).join('\n    ')}`);
  }
  return all;
}

function differencesOf(former: Reading, current: Reading | undefined, added: Set<string>): Difference[] {
  if (current === undefined) return [{ path: '(missing)', former: former.status, current }];
  if (former.status !== current.status) {
    return [
      { path: '(status)', former: `${former.status} ${former.text}`, current: `${current.status} ${current.text}` },
    ];
  }
  const found = differences(former.text, current.text, added);
  return former.etag === current.etag
    ? found
    : [...found, { path: '(etag)', former: former.etag, current: current.etag }];
}

/** The route and the names of its parameters. */
function routeOf(key: string): string {
  const [address = '', query = ''] = key.replaceAll(/(?<=[/ ])[\w-]{22,}/g, '{id}').split('?');
  const names = query === '' ? '' : `?${[...new URLSearchParams(query).keys()].join('&')}`;
  return address + names;
}

const shortened = (value: unknown): string => String(JSON.stringify(value)).slice(0, 400);
