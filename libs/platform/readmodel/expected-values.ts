import { Fault } from '#libs/kernel/faults.ts';
import { textsOf, type RedisClient } from '#libs/platform/redis/index.ts';

import type { WriteOperation } from './read-model.ts';

/** A string, a field of a hash, or a member of a set: `part` is null for a string. */
interface Slot {
  readonly kind: 'string' | 'field' | 'score' | 'member';
  readonly key: string;
  readonly part: string | null;
}

/** The value that a slot must hold: null for an empty slot, undefined for any value. */
type Expected = string | null | undefined;

const STEP = 500;

/** Compares the writes of an entity, as its events demand them, with what Redis holds. */
export class ExpectedValues {
  readonly #redis: RedisClient;
  readonly #expected = new Map<string, { readonly slot: Slot; readonly value: Expected }>();

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** Values that Redis does not hold; 0 before {@link compare}. */
  get size(): number {
    return this.#expected.size;
  }

  /** Later operations replace what earlier ones demanded of the same slot. */
  add(operations: readonly WriteOperation[]): void {
    for (const { command, key, args } of operations) {
      const texts = args.map(String);
      switch (command) {
        case 'SET':
          this.#put({ kind: 'string', key, part: null }, texts.length === 1 ? texts[0] : undefined);
          break;
        case 'SETRANGE':
          // The bytes before it are not known here.
          this.#put({ kind: 'string', key, part: null }, undefined);
          break;
        case 'DEL':
          this.#put({ kind: 'string', key, part: null }, null);
          break;
        case 'HSET':
          for (let at = 0; at + 1 < texts.length; at += 2) this.#put(slotOf('field', key, texts[at]), texts[at + 1]);
          break;
        case 'HDEL':
          for (const field of texts) this.#put(slotOf('field', key, field), null);
          break;
        case 'ZADD': {
          const isPlain = typeof args[0] === 'number';
          const pairs = isPlain ? texts : texts.slice(1);
          // With an option, the score depends on earlier events.
          for (let at = 0; at + 1 < pairs.length; at += 2) {
            this.#put(slotOf('score', key, pairs[at + 1]), isPlain ? pairs[at] : undefined);
          }
          break;
        }
        case 'ZREM':
          for (const member of texts) this.#put(slotOf('score', key, member), null);
          break;
        case 'SADD':
          for (const member of texts) this.#put(slotOf('member', key, member), '1');
          break;
        case 'SREM':
          for (const member of texts) this.#put(slotOf('member', key, member), '0');
          break;
      }
    }
  }

  /** Keeps only what Redis does not hold. @throws `Fault` `store_unavailable` */
  async compare(): Promise<void> {
    const all = [...this.#expected.values()];
    const strings = all.filter(({ slot: { kind } }) => kind === 'string');
    const byKey = Map.groupBy(
      all.filter(({ slot: { kind } }) => kind !== 'string'),
      ({ slot: { kind, key } }) => `${kind} ${key}`,
    );
    const groups = [strings, ...byKey.values()].flatMap((group) => portionsOf(group));
    await Promise.all(
      groups.map(async (group) => {
        const found = await this.#read(group.map(({ slot }) => slot));
        for (const [index, { slot, value }] of group.entries()) {
          if (value === undefined || isSame(slot.kind, value, found[index])) this.#expected.delete(nameOf(slot));
        }
      }),
    );
  }

  /** @param slots strings, or slots of one kind of one key @returns nothing for a key of another type */
  async #read(slots: readonly Slot[]): Promise<readonly (string | number | null)[]> {
    const [first] = slots;
    if (first === undefined) return [];
    const { kind, key } = first;
    const parts = slots.map(({ part }) => part ?? '');
    try {
      if (kind === 'string') return textsOf(await this.#redis.values(slots.map((one) => one.key)));
      if (kind === 'field') return await this.#redis.send(key, (node) => node.hmget(key, ...parts));
      if (kind === 'score') return await this.#redis.send(key, (node) => node.zmscore(key, ...parts));
      return await this.#redis.send(key, (node) => node.smismember(key, ...parts));
    } catch (error) {
      if (error instanceof Fault) throw error;
      return [];
    }
  }

  #put(one: Slot, value: Expected): void {
    this.#expected.set(nameOf(one), { slot: one, value });
  }
}

function slotOf(kind: Slot['kind'], key: string, part = ''): Slot {
  return { kind, key, part };
}

function portionsOf<T>(items: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(items.length / STEP) }, (_, at) => items.slice(at * STEP, (at + 1) * STEP));
}

function nameOf({ kind, key, part }: Slot): string {
  return `${kind} ${key} ${part}`;
}

function isSame(kind: Slot['kind'], expected: string | null, found: string | number | null | undefined): boolean {
  if (found === undefined) return false;
  if (expected === null || found === null) return expected === found;
  return kind === 'score' ? Number(expected) === Number(found) : expected === String(found);
}
