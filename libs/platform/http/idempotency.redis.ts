import { randomUUID } from 'node:crypto';

import { LRUCache } from 'lru-cache';
import { z } from 'zod';

import { streamRevision } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import { FunctionLibrary, type FunctionCall, type RedisClient, valuesOf } from '#libs/platform/redis/index.ts';

import { idempotencyKey } from './idempotency.keys.ts';
import { POSITION_HEADER } from './position.ts';
import { ReplyBudget } from './reply-budget.ts';
import type { IdempotencyScope, IdempotencyStart, IdempotencyStore, OwnField, StoredResponse } from './idempotency.ts';

const KEEP_MS = 24 * 60 * 60 * 1_000;
/** Lease of a key, unless its process renews it. */
const LEASE_MS = 3_000;
const RENEW_EVERY_MS = 1_000;
/** Time after which a lease is no longer renewed. */
const MAX_RUN_MS = 60_000;

/** All replies that a process has stored. */
const MAX_REPLY_BYTES = 256 * 1024 * 1024;
/** Memory of a reply in Redis beside its headers and body: its key, hash and expiry. */
const REPLY_BYTES = 300;

const startReply = z.union([
  z.tuple([z.literal('started'), z.string(), z.string(), z.string()]),
  z.tuple([z.literal('in_flight'), z.int()]),
  z.tuple([z.literal('mismatch')]),
  z.tuple([z.literal('completed'), z.coerce.number().int(), z.string(), z.string()]),
]);
const headersJson = z.record(z.string(), z.string());

interface Held {
  readonly scope: IdempotencyScope;
  readonly sinceMs: number;
}

/** A key that was taken while Redis did not answer. */
interface Unrecorded {
  readonly scope: IdempotencyScope;
  readonly fingerprint: string;
  /** Null while the request runs. */
  readonly response: StoredResponse | null;
}

/** Of the keys and replies that a process remembers until Redis answers. Without them, only the log shows what has run. */
const MAX_UNRECORDED_BYTES = 32 * 1024 * 1024;
/** Keys that are recorded in one write. */
const RECORDED_AT_ONCE = 100;

export interface RedisIdempotencyOptions {
  /** Limit of the replies that this process has stored. Default: 256 MiB. */
  readonly maxReplyBytes?: number;
  /** Called with the bytes of the stored replies. */
  readonly onStored?: (bytes: number) => void;
}

/** {@link IdempotencyStore} in Redis, by the clock of Redis. */
export class RedisIdempotencyStore implements IdempotencyStore {
  readonly #redis: RedisClient;
  readonly #functions: FunctionLibrary;
  /** Leases that this process renews. */
  readonly #held = new Map<string, Held>();
  /** By lease. */
  readonly #unrecorded = new LRUCache<string, Unrecorded>({
    maxSize: MAX_UNRECORDED_BYTES,
    sizeCalculation: ({ response }) => REPLY_BYTES + (response?.body.length ?? 0),
  });
  readonly #budget: ReplyBudget;
  readonly #options: RedisIdempotencyOptions;
  #isRenewing = false;

  constructor(redis: RedisClient, options: RedisIdempotencyOptions = {}) {
    this.#redis = redis;
    this.#options = options;
    this.#budget = new ReplyBudget(options.maxReplyBytes ?? MAX_REPLY_BYTES, KEEP_MS);
    this.#functions = new FunctionLibrary(redis, new URL('./lua/idempotency.lua', import.meta.url));
  }

  async begin(scope: IdempotencyScope, fingerprint: string, field?: OwnField): Promise<IdempotencyStart> {
    const lease = randomUUID();
    let reply: z.output<typeof startReply>;
    let absent: string;
    try {
      [reply, absent] = await this.#begin(beginning(scope, fingerprint, lease), field);
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== 'store_unavailable') throw error;
      this.#unrecorded.set(lease, { scope, fingerprint, response: null });
      return { state: 'started', lease, unknownSinceMs: Date.now() - KEEP_MS };
    }
    switch (reply[0]) {
      case 'started':
        this.#held.set(lease, { scope, sinceMs: performance.now() });
        this.#renewLater();
        return {
          state: 'started',
          lease,
          ...(reply[1] !== '' && { begunAtMs: Number(reply[1]) }),
          ...(reply[2] !== '' && { position: reply[2] }),
          ...(absent !== '' && { absentAt: streamRevision(Number(absent)) }),
        };
      case 'in_flight':
        return { state: 'in_flight', leaseEndsInMs: reply[1] };
      case 'mismatch':
        return { state: 'mismatch' };
      case 'completed': {
        const headers = headersJson.parse(JSON.parse(reply[2]));
        return { state: 'completed', response: { status: reply[1], headers, body: reply[3] } };
      }
    }
  }

  /** @returns the reply, and the revision as of which the field is absent; '' if it is not, or is not known */
  async #begin(call: FunctionCall, field: OwnField | undefined): Promise<[z.output<typeof startReply>, string]> {
    const isOneCall = field === undefined || this.#redis.isOneServer;
    const calls = isOneCall ? [field ? withField(call, field) : call] : [call, withField(ABSENT, field)];
    const [begun, absent] = await this.#functions.repliesTo(calls);
    const [value] = valuesOf(begun ? [begun] : []);
    const reply = startReply.parse(value);
    // Of a cluster: the field is in another slot, whose node may be unavailable.
    if (absent !== undefined) return [reply, absent.ok ? String(absent.value) : ''];
    return [reply, reply[0] === 'started' ? reply[3] : ''];
  }

  async complete(scope: IdempotencyScope, lease: string, response: StoredResponse): Promise<void> {
    this.#held.delete(lease);
    const unrecorded = this.#unrecorded.get(lease);
    if (unrecorded === undefined) await this.#functions.callAll([this.#completion(scope, lease, response)]);
    else {
      this.#unrecorded.set(lease, { ...unrecorded, response });
      this.#renewLater();
    }
  }

  #completion(scope: IdempotencyScope, lease: string, response: StoredResponse): FunctionCall {
    const { status, headers, body, isKept = false } = response;
    const headersText = JSON.stringify(headers);
    const bytes = REPLY_BYTES + headersText.length + Buffer.byteLength(body);
    const keepMs = this.#budget.keepMs(bytes);
    this.#options.onStored?.(this.#budget.bytes);
    // A rejection is small, and without it a repeated request would search the log for events that it does not have.
    const replyMs = isKept || status >= 400 ? KEEP_MS : keepMs;
    const position = headers[POSITION_HEADER] ?? '';
    return functionCall('complete', scope, [lease, status, headersText, body, KEEP_MS, replyMs, position]);
  }

  async abandon(scope: IdempotencyScope, lease: string): Promise<void> {
    this.#held.delete(lease);
    if (!this.#unrecorded.delete(lease)) await this.#functions.callAll([functionCall('abandon', scope, [lease])]);
  }

  /** The timer of all leases, which runs only while there are any, or outcomes to record. */
  #renewLater(): void {
    if (this.#isRenewing || this.#held.size + this.#unrecorded.size === 0) return;
    this.#isRenewing = true;
    setTimeout(() => {
      void this.#renew().finally(() => {
        this.#isRenewing = false;
        this.#renewLater();
      });
    }, RENEW_EVERY_MS).unref();
  }

  async #renew(): Promise<void> {
    const calls: FunctionCall[] = [];
    for (const [lease, { scope, sinceMs }] of this.#held) {
      if (performance.now() - sinceMs > MAX_RUN_MS) this.#held.delete(lease);
      else calls.push(functionCall('renew', scope, [lease, LEASE_MS]));
    }
    try {
      await this.#functions.callAll(calls);
      while (await this.#recordSome());
    } catch {
      // Renewed next time. If the lease ends before, a retry may run the same command again, which is safe.
    }
  }

  /** @returns whether there may be more @throws `Fault` `store_unavailable` while Redis does not answer */
  async #recordSome(): Promise<boolean> {
    const ended = [...this.#unrecorded].flatMap(([lease, { response, ...key }]) =>
      response === null ? [] : [{ lease, response, ...key }],
    );
    const some = ended.slice(-RECORDED_AT_ONCE);
    await this.#functions.callAll(some.map(({ scope, fingerprint, lease }) => beginning(scope, fingerprint, lease)));
    await this.#functions.callAll(some.map(({ scope, lease, response }) => this.#completion(scope, lease, response)));
    for (const { lease } of some) this.#unrecorded.delete(lease);
    return ended.length > some.length;
  }
}

function beginning(scope: IdempotencyScope, fingerprint: string, lease: string): FunctionCall {
  return functionCall('begin', scope, [fingerprint, lease, LEASE_MS, KEEP_MS]);
}

const ABSENT: FunctionCall = { name: 'parley_idempotency_absent_v5', keys: [], args: [] };

function withField({ name, keys, args }: FunctionCall, { revisionKey, key, field }: OwnField): FunctionCall {
  return { name, keys: [...keys, revisionKey, key], args: [...args, field] };
}

function functionCall(name: string, scope: IdempotencyScope, args: readonly (string | number)[]): FunctionCall {
  const key = idempotencyKey(scope);
  return { name: `parley_idempotency_${name}_v5`, keys: [key, `${key}:reply`], args };
}
