import { createHash } from 'node:crypto';

import { isObject, type JsonObject } from '#libs/kernel/json.ts';
import { admitJson, admitText } from '#libs/kernel/text.ts';

import type { SentMessage } from './model.ts';

/** Of what a step keeps of the endpoint's message. A message that is longer loses its largest members. */
export const MAX_SENT_BYTES = 131_072;
/** Characters that one member may have while it is collected. */
const MAX_COLLECTED = 1_000_000;

/** Names the endpoint and the model that a message is from, without naming the endpoint to readers of the log. */
export function sourceOf(baseUrl: string, model: string): string {
  return createHash('sha256').update(`${baseUrl}\n${model}`).digest('hex').slice(0, 16);
}

/** Members of a message that Parley only keeps, from the deltas that they arrive in. */
export class OpaqueMembers {
  readonly #members: Record<string, unknown> = {};
  #length = 0;

  add(name: string, value: unknown): void {
    if (value === null || value === undefined || value === '' || name === '__proto__') return;
    this.#length += typeof value === 'string' ? value.length : JSON.stringify(value).length;
    if (this.#length <= MAX_COLLECTED) this.#members[name] = joined(this.#members[name], value);
  }

  get members(): JsonObject {
    return Object.fromEntries(
      Object.entries(this.#members).filter(([, value]) => !Array.isArray(value) || value.length > 0),
    );
  }
}

/** Texts and lists grow; objects take each other's members. */
function joined(known: unknown, more: unknown): unknown {
  if (typeof known === 'string' && typeof more === 'string') return known + more;
  if (Array.isArray(more)) return more.reduce<unknown[]>(withItem, Array.isArray(known) ? known : []);
  if (isObject(known) && isObject(more)) {
    const members = { ...known };
    for (const name in more) members[name] = GROWING.has(name) ? joined(members[name], more[name]) : more[name];
    return members;
  }
  return more;
}

/** Members of blocks of reasoning that arrive in pieces. Others, such as a signature or a type, come once or are repeated. */
const GROWING: ReadonlySet<string> = new Set(['text', 'thinking', 'summary', 'content']);
const SEALS = ['signature', 'data', 'encrypted_content'];

/** A block that continues the last one is joined with it: same type, index and id, and not ended by a signature. */
function withItem(items: unknown[], item: unknown): unknown[] {
  const last = items.at(-1);
  if (!isObject(last) || !isObject(item)) return [...items, item];
  const isNext =
    ['type', 'index', 'id'].every(
      (name) => (item[name] ?? last[name] ?? null) === (last[name] ?? item[name] ?? null),
    ) && SEALS.every((name) => (last[name] ?? '') === '');
  const given = Object.fromEntries(Object.entries(item).filter(([, value]) => value !== null && value !== ''));
  return isNext ? [...items.slice(0, -1), joined(last, given)] : [...items, item];
}

/** @returns null if there is nothing to keep, and the names of members that were too large */
export function sentMessage(
  source: string,
  members: JsonObject,
): { readonly sent: SentMessage | null; readonly omitted: readonly string[] } {
  const kept = { ...admitJson(members) };
  const omitted: string[] = [];
  const sizes = new Map(Object.entries(kept).map(([name, value]) => [name, Buffer.byteLength(JSON.stringify(value))]));
  for (const [name] of [...sizes].toSorted(([, a], [, b]) => b - a)) {
    if ([...sizes.values()].reduce((sum, size) => sum + size, 0) <= MAX_SENT_BYTES) break;
    sizes.delete(name);
    delete kept[name];
    omitted.push(admitText(name, 100));
  }
  return { sent: Object.keys(kept).length === 0 ? null : { source, message: kept }, omitted };
}
