import { randomUUID } from 'node:crypto';

import { z } from 'zod';

import { FunctionLibrary, type FunctionCall, type RedisClient } from '#libs/platform/redis/index.ts';

import { idempotencyKey } from './idempotency.keys.ts';
import { POSITION_HEADER } from './position.ts';
import { ReplyBudget } from './reply-budget.ts';
import type { IdempotencyScope, IdempotencyStart, IdempotencyStore, StoredResponse } from './idempotency.ts';

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
  z.tuple([z.literal('started'), z.string(), z.string()]),
  z.tuple([z.literal('in_flight'), z.int()]),
  z.tuple([z.literal('mismatch')]),
  z.tuple([z.literal('completed'), z.coerce.number().int(), z.string(), z.string()]),
]);
const headersJson = z.record(z.string(), z.string());

interface Held {
  readonly scope: IdempotencyScope;
  readonly sinceMs: number;
}

export interface RedisIdempotencyOptions {
  /** Limit of the replies that this process has stored. Default: 256 MiB. */
  readonly maxReplyBytes?: number;
  /** Called with the bytes of the stored replies. */
  readonly onStored?: (bytes: number) => void;
}

/** {@link IdempotencyStore} in Redis, by the clock of Redis. */
export class RedisIdempotencyStore implements IdempotencyStore {
  readonly #functions: FunctionLibrary;
  /** Leases that this process renews. */
  readonly #held = new Map<string, Held>();
  readonly #budget: ReplyBudget;
  readonly #options: RedisIdempotencyOptions;
  #isRenewing = false;

  constructor(redis: RedisClient, options: RedisIdempotencyOptions = {}) {
    this.#options = options;
    this.#budget = new ReplyBudget(options.maxReplyBytes ?? MAX_REPLY_BYTES, KEEP_MS);
    this.#functions = new FunctionLibrary(redis, new URL('./lua/idempotency.lua', import.meta.url));
  }

  async begin(scope: IdempotencyScope, fingerprint: string): Promise<IdempotencyStart> {
    const lease = randomUUID();
    const reply = startReply.parse(await this.#call('begin', scope, [fingerprint, lease, LEASE_MS, KEEP_MS]));
    switch (reply[0]) {
      case 'started':
        this.#held.set(lease, { scope, sinceMs: performance.now() });
        this.#renewLater();
        return {
          state: 'started',
          lease,
          ...(reply[1] !== '' && { begunAtMs: Number(reply[1]) }),
          ...(reply[2] !== '' && { position: reply[2] }),
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

  async complete(scope: IdempotencyScope, lease: string, response: StoredResponse): Promise<void> {
    this.#held.delete(lease);
    const { status, headers, body, isKept = false } = response;
    const headersText = JSON.stringify(headers);
    const bytes = REPLY_BYTES + headersText.length + Buffer.byteLength(body);
    const keepMs = this.#budget.keepMs(bytes);
    this.#options.onStored?.(this.#budget.bytes);
    // A rejection is small, and without it a repeated request would search the log for events that it does not have.
    const replyMs = isKept || status >= 400 ? KEEP_MS : keepMs;
    const position = headers[POSITION_HEADER] ?? '';
    await this.#call('complete', scope, [lease, status, headersText, body, KEEP_MS, replyMs, position]);
  }

  async abandon(scope: IdempotencyScope, lease: string): Promise<void> {
    this.#held.delete(lease);
    await this.#call('abandon', scope, [lease]);
  }

  /** One timer for all leases, which runs only while there are any. */
  #renewLater(): void {
    if (this.#isRenewing || this.#held.size === 0) return;
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
    } catch {
      // Renewed next time. If the lease ends before, a retry may run the same command again, which is safe.
    }
  }

  async #call(name: string, scope: IdempotencyScope, args: readonly (string | number)[]): Promise<unknown> {
    const [reply] = await this.#functions.callAll([functionCall(name, scope, args)]);
    return reply;
  }
}

function functionCall(name: string, scope: IdempotencyScope, args: readonly (string | number)[]): FunctionCall {
  const key = idempotencyKey(scope);
  return { name: `parley_idempotency_${name}_v4`, keys: [key, `${key}:reply`], args };
}
