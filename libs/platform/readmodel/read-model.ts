import { isDeepStrictEqual } from 'node:util';

import { z } from 'zod';

import { NO_EVENTS, streamRevision, type StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import {
  FunctionLibrary,
  textsOf,
  type FunctionCall,
  type OwnTopic,
  type RedisClient,
  type TopicSubscriptions,
} from '#libs/platform/redis/index.ts';

import type { ListKeys } from './read-model.keys.ts';
import { snapshotKeys, snapshotOf, type Snapshot, type SnapshotTexts, type StoredEntity } from './snapshot.ts';

/**
 * An absolute write: its result does not depend on earlier values. (`ZADD … LT` keeps the lowest score that events have
 * given a member, which is the same however often they are applied.)
 */
export interface WriteOperation {
  /**
   * `SETRANGE` follows bytes that earlier events wrote. If these are missing, the entity's revision is deleted, so that it
   * is folded again from its first event.
   */
  readonly command: 'SET' | 'SETRANGE' | 'DEL' | 'HSET' | 'HDEL' | 'ZADD' | 'ZREM' | 'SADD' | 'SREM';
  readonly key: string;
  readonly args: readonly (string | number)[];
}

/** The indexes of a list that contain an entity; no facets remove it from the list. */
export interface IndexedEntry {
  readonly list: ListKeys;
  readonly member: EntityId;
  readonly facets: readonly string[];
  /** Of the last event behind the entry: older entries never replace newer ones. */
  readonly revision: StreamRevision;
}

export interface Publication {
  readonly topic: string;
  readonly message: string;
  /** Whether it is published also when all of the run had been applied before. Never after a gap. */
  readonly alsoOfDuplicates: boolean;
  /** Never overtakes what was published to the topic before, as a reply may: Redis publishes it for any subscribers. */
  readonly followsEarlier?: boolean;
}

/**
 * Writes of the run of events `first..last` of one stream for its entity. Another process may have applied the first events
 * of the run: so the operations write all that any of its events has changed, also what a later one has changed back. A run
 * without events, `first` being `last` + 1, is never applied, because it writes nothing of the events before it.
 */
export interface EntityWrite {
  readonly revisionKey: string;
  readonly first: StreamRevision;
  readonly last: StreamRevision;
  readonly operations: readonly WriteOperation[];
  readonly lists: readonly IndexedEntry[];
  /** Published in the same step as the run is applied. */
  readonly publication?: Publication | null;
}

export interface ApplyOutcome {
  /** `gap`: events between `stored` and the run are missing; read the stream from `stored + 1`. */
  readonly kind: 'applied' | 'duplicate' | 'gap';
  readonly stored: StreamRevision;
  /** Only this process subscribes to the topic, so Redis has not published. */
  readonly isOwn?: boolean;
}

export interface FieldLookup {
  readonly key: string;
  readonly field: string;
  /**
   * The caller found no value as of this revision, and no event has one except those of the caller's own command: it is
   * looked up only where that command may have run since.
   */
  readonly absentAt?: StreamRevision;
}

/** How many members of one of an entity's sorted sets have a score. */
export interface CountLookup {
  readonly key: string;
  readonly score: number;
}

export type Lookup = FieldLookup | CountLookup;

export const READ_MODEL_FUNCTIONS = new URL('./lua/read-model.lua', import.meta.url);

/** Reads of one snapshot while interactions of the entity begin and end. */
const SNAPSHOT_ATTEMPTS = 5;

const lookupReply = z.tuple([z.string().nullable()]).rest(z.union([z.string(), z.int()]).nullable());

const OUTCOMES = new Map([
  [1, 'applied'],
  [0, 'duplicate'],
  [-1, 'gap'],
] as const);

/**
 * Writes read models, guarded by revision: any process may apply any events at any time, again or late, without a
 * lease.
 *
 * Guarantees: all writes of one entity and its revision happen at once or, if Redis fails between, are
 * repeated as a whole by the next application; an older view never replaces a newer one. Publications happen
 * in the same step, in the order of the revisions, and never for a run that was not applied. A publication that only this
 * process subscribes to reaches its subscribers with the reply, without pub/sub.
 *
 * Omissions: does not read the log; a gap is reported, not filled.
 */
export class ReadModel {
  readonly #redis: RedisClient;
  readonly #functions: FunctionLibrary;
  readonly #topics: Pick<TopicSubscriptions, 'own'> | undefined;

  /** @param topics of this process: it gets a publication without Redis while no other process subscribes to its topic */
  constructor(redis: RedisClient, topics?: Pick<TopicSubscriptions, 'own'>) {
    this.#redis = redis;
    this.#topics = topics;
    this.#functions = new FunctionLibrary(redis, READ_MODEL_FUNCTIONS);
  }

  /**
   * Applies writes of different entities in one round trip; outcomes come in the same order.
   *
   * @throws `Fault` `store_unavailable`; some of the writes may have happened, all may be repeated
   */
  async apply(writes: readonly EntityWrite[]): Promise<ApplyOutcome[]> {
    const only = writes.length === 1 ? writes[0]?.publication : null;
    const own = only && only.followsEarlier !== true ? (this.#topics?.own(only.topic) ?? null) : null;
    // Lists come first, because the revision of an entity implies that its list entries are written. In a cluster, they are on
    // other nodes than the entity.
    const { isOneServer } = this.#redis;
    if (!isOneServer) await this.#functions.callAll(writes.flatMap((write) => write.lists.map(indexCall)));
    const calls = writes.map((write) => applyCall(write, own, isOneServer ? write.lists : []));
    const replies = await this.#functions.callAll(calls).catch((error: unknown) => {
      // The write may have happened all the same, and left the publication to this process.
      own?.miss();
      throw error;
    });
    const outcomes = replies.map(outcome);
    if (own !== null && only && outcomes[0]?.isOwn === true) this.#publish(own, only);
    return outcomes;
  }

  /** Publishes in Redis after all, if the process has left the topic meanwhile: then another one was its only subscriber. */
  #publish(own: OwnTopic, { topic, message }: Publication): void {
    if (own.receive(Buffer.from(message))) return;
    this.#redis.send(topic, (node) => node.spublish(topic, message)).catch(() => undefined);
  }

  /** The revisions that the read model reflects, `-1` for entities it does not have. */
  async revisions(revisionKeys: readonly string[]): Promise<StreamRevision[]> {
    if (revisionKeys.length === 0) return [];
    const stored = textsOf(await this.#redis.values(revisionKeys));
    return stored.map((value) => (value === null ? NO_EVENTS : streamRevision(Number(value))));
  }

  /**
   * Fields of an entity (null for those that are not there) and counts, with the revision that they reflect.
   *
   * @throws `Fault` `store_unavailable`
   */
  async lookUp(
    revisionKey: string,
    lookups: readonly Lookup[],
  ): Promise<{ readonly revision: StreamRevision; readonly values: readonly (string | number | null)[] }> {
    const keys = [revisionKey, ...new Set(lookups.map(({ key }) => key))];
    const args = lookups.flatMap((lookup) => [
      'score' in lookup ? 'count' : 'field',
      keys.indexOf(lookup.key) + 1,
      'score' in lookup ? lookup.score : lookup.field,
    ]);
    const [reply] = await this.#functions.callAll([{ name: 'parley_lookup_v8', keys, args }]);
    const [revision, ...values] = lookupReply.parse(reply);
    return { revision: revision === null ? NO_EVENTS : streamRevision(Number(revision)), values };
  }

  /**
   * The states that entities were last projected with, null for those that are not there, in one round trip; in two
   * where a part of a state is in several keys.
   */
  async snapshots(entities: readonly StoredEntity[]): Promise<(Snapshot | null)[]> {
    if (entities.length === 0) return [];
    const keysOf = entities.map((entity) => snapshotKeys(entity));
    const values = textsOf(await this.#redis.values(keysOf.flat()));
    let next = 0;
    return Promise.all(
      entities.map((entity, index) => this.#snapshot(entity, values.slice(next, (next += keysOf[index]?.length ?? 0)))),
    );
  }

  /** Reads the keys that a state names together with that state, until it is the same as when it was read before. */
  async #snapshot(entity: StoredEntity, first: SnapshotTexts): Promise<Snapshot | null> {
    let texts = first;
    for (let attempt = 0; attempt < SNAPSHOT_ATTEMPTS; attempt++) {
      const keys = snapshotKeys(entity, texts);
      if (keys.length === texts.length) return snapshotOf(entity, texts);
      const again = textsOf(await this.#redis.values(keys));
      const own = texts.length;
      texts = isDeepStrictEqual(snapshotKeys(entity, again.slice(0, own)), keys) ? again : again.slice(0, own);
    }
    // Folded from the log instead.
    return null;
  }
}

function applyCall(write: EntityWrite, own: OwnTopic | null, lists: readonly IndexedEntry[]): FunctionCall {
  const keys = [write.revisionKey];
  const indexes = new Map<string, number>();
  // Values of the leading `SET` operations; the others follow, so that the order stays.
  const values: (string | number)[] = [];
  for (const { command, key, args: operands } of write.operations) {
    const [value] = operands;
    if (command !== 'SET' || operands.length !== 1 || value === undefined || indexes.has(key)) break;
    indexes.set(key, keys.push(key));
    values.push(value);
  }
  const args: (string | number)[] = [write.first, write.last, values.length, ...values];
  for (const { command, key, args: operands } of joined(write.operations.slice(values.length))) {
    let index = indexes.get(key);
    if (index === undefined) {
      index = keys.push(key);
      indexes.set(key, index);
    }
    args.push(command, index, operands.length, ...operands);
  }
  const { publication } = write;
  if (publication) {
    keys.push(publication.topic);
    args.push(own?.witness ?? '', publication.alsoOfDuplicates ? 1 : 0, publication.message);
  }
  for (const entry of lists) {
    keys.push(entry.list.members);
    args.push(...indexArgs(entry));
  }
  args.push(lists.length);
  return { name: publication ? 'parley_apply_and_publish_v8' : 'parley_apply_v8', keys, args };
}

/** Arguments of one operation in Lua, whose stack is small. */
const MAX_OPERANDS = 1_000;
const JOINABLE = new Set<WriteOperation['command']>(['HSET', 'HDEL', 'ZADD', 'ZREM', 'SADD', 'SREM']);

/**
 * The same writes in fewer operations: consecutive ones on one key become one, because Redis spends more on an operation
 * than on what it writes. Operations on different keys do not depend on each other.
 */
function joined(operations: readonly WriteOperation[]): readonly WriteOperation[] {
  const result: { command: WriteOperation['command']; key: string; args: WriteOperation['args'][number][] }[] = [];
  const newest = new Map<string, (typeof result)[number]>();
  for (const { command, key, args } of operations) {
    const before = newest.get(key);
    // Excludes `ZADD` with an option, such as `LT`, before the first score.
    const isPlain = JOINABLE.has(command) && (command !== 'ZADD' || typeof args[0] === 'number');
    if (isPlain && before?.command === command && before.args.length + args.length <= MAX_OPERANDS) {
      before.args.push(...args);
      continue;
    }
    const operation = { command, key, args: [...args] };
    result.push(operation);
    if (isPlain) newest.set(key, operation);
    else newest.delete(key);
  }
  return result;
}

function indexCall(entry: IndexedEntry): FunctionCall {
  return { name: 'parley_index_v8', keys: [entry.list.members], args: indexArgs(entry) };
}

function indexArgs({ list, member, revision, facets }: IndexedEntry): string[] {
  return [list.indexPrefix, member, [revision, ...facets].join(' ')];
}

function outcome(reply: unknown): ApplyOutcome {
  if (!Array.isArray(reply)) throw new TypeError('parley_apply_v8 returned no outcome');
  const kind = OUTCOMES.get(reply[0]);
  if (kind === undefined) throw new TypeError(`parley_apply_v8 returned ${String(reply[0])}`);
  return { kind, stored: streamRevision(Number(reply[1])), ...(reply[2] === 1 && { isOwn: true }) };
}
