import { randomUUID } from 'node:crypto';

import { z } from 'zod';

import type {
  IdempotencyScope,
  IdempotencyStart,
  IdempotencyStore,
  StoredResponse,
} from '#libs/platform/http/index.ts';

import { FunctionLibrary } from './function-library.ts';
import type { RedisClient } from './redis-client.ts';
import { idempotencyKey } from './redis.keys.ts';

const startReply = z.union([
  z.tuple([z.literal('started'), z.string()]),
  z.tuple([z.enum(['in_flight', 'mismatch'])]),
  z.tuple([z.literal('completed'), z.coerce.number().int(), z.string(), z.string()]),
]);
const headersJson = z.record(z.string(), z.string());

/** Remembers the answers to idempotency keys in Redis; time is Redis' own. See the port for guarantees. */
export class RedisIdempotencyStore implements IdempotencyStore {
  readonly #functions: FunctionLibrary;

  constructor(redis: RedisClient) {
    this.#functions = new FunctionLibrary(redis, new URL('./lua/idempotency.lua', import.meta.url));
  }

  async begin(
    scope: IdempotencyScope,
    fingerprint: string,
    { leaseMs, keepMs }: { leaseMs: number; keepMs: number },
  ): Promise<IdempotencyStart> {
    const lease = randomUUID();
    const reply = startReply.parse(await this.#call('begin', scope, [fingerprint, lease, leaseMs, keepMs]));
    if (reply[0] === 'started') {
      return { state: 'started', lease, ...(reply[1] !== '' && { begunAtMs: Number(reply[1]) }) };
    }
    if (reply[0] !== 'completed') return { state: reply[0] };
    const headers = headersJson.parse(JSON.parse(reply[2]));
    return { state: 'completed', response: { status: reply[1], headers, body: reply[3] } };
  }

  async complete(scope: IdempotencyScope, lease: string, response: StoredResponse, keepMs: number): Promise<void> {
    const { status, headers, body } = response;
    await this.#call('complete', scope, [lease, status, JSON.stringify(headers), body, keepMs]);
  }

  async abandon(scope: IdempotencyScope, lease: string): Promise<void> {
    await this.#call('abandon', scope, [lease]);
  }

  async #call(name: string, scope: IdempotencyScope, args: readonly (string | number)[]): Promise<unknown> {
    const call = { name: `parley_idempotency_${name}_v2`, keys: [idempotencyKey(scope)], args };
    const [reply] = await this.#functions.callAll([call]);
    return reply;
  }
}
