import type { IncomingMessage } from 'node:http';
import proxyAddr from '@fastify/proxy-addr';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Fault } from '#libs/kernel/faults.ts';
import { recentlyUsed } from '#libs/platform/caches/index.ts';
import { QueueFull, type FairSemaphore } from '#libs/platform/lifecycle/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { tooManyRequests } from './errors.ts';
import type { HttpServerOptions, RateLimit } from './server-options.ts';

/** @throws HttpError 429 with `Retry-After` if the caller has used up its window */
export type Limiter = (request: FastifyRequest, reply: FastifyReply) => void;

export interface Limiters {
  /** Applied before authentication, which bounds guesses of keys. */
  readonly perAddress: Limiter | undefined;
  readonly perKey: Limiter | undefined;
  /** Seconds until the address may open a websocket, or 0. Counted with its other requests. */
  readonly upgradeAfter: (address: string) => number;
  /** The caller's address of an upgrade, which has no Fastify request; found as Fastify does. */
  readonly addressOfUpgrade: (request: IncomingMessage) => string;
}

const PER_KEY: RateLimit = { max: 6_000, windowMs: 60_000 };
const PER_ADDRESS: RateLimit = { max: 30_000, windowMs: 60_000 };
/** Beyond this, the window of the least recently seen caller starts again. */
const MAX_CALLERS = 20_000;

export function createLimiters({
  rateLimits = {},
  trustedProxies = [],
}: Pick<HttpServerOptions, 'rateLimits' | 'trustedProxies'>): Limiters {
  const { perKey = PER_KEY, perAddress = PER_ADDRESS } = rateLimits;
  const addresses = perAddress ? new Windows(perAddress) : undefined;
  const isTrusted = proxyAddr.compile([...trustedProxies]);
  return {
    perAddress: addresses && limiter(addresses, callerAddress),
    perKey: perKey ? limiter(new Windows(perKey), (request) => request.principal.keyId) : undefined,
    upgradeAfter: (address) => addresses?.take(address) ?? 0,
    addressOfUpgrade: (request) => callerAddress({ ip: proxyAddr(request, isTrusted) }),
  };
}

interface Window {
  endsAt: number;
  used: number;
}

/** Fixed windows per caller, in this process only. */
export class Windows {
  readonly max: number;
  readonly #windowMs: number;
  readonly #windows = recentlyUsed<string, Window>(MAX_CALLERS);

  constructor({ max, windowMs }: RateLimit) {
    this.max = max;
    this.#windowMs = windowMs;
  }

  /** @returns 0, or the remaining seconds of a window that the caller has used up */
  take(caller: string): number {
    const now = performance.now();
    const window = this.#windows.get(caller);
    if (window === undefined) this.#windows.set(caller, { endsAt: now + this.#windowMs, used: 1 });
    else if (window.endsAt <= now) {
      window.endsAt = now + this.#windowMs;
      window.used = 1;
    } else {
      window.used += 1;
      if (window.used > this.max) return Math.max(1, Math.ceil((window.endsAt - now) / 1000));
    }
    return 0;
  }

  /** As `take`, without counting. */
  remaining(caller: string): number {
    const window = this.#windows.peek(caller);
    if (window === undefined || window.used < this.max) return 0;
    return Math.max(0, Math.ceil((window.endsAt - performance.now()) / 1000));
  }
}

function limiter(windows: Windows, callerOf: (request: FastifyRequest) => string): Limiter {
  return (request, reply) => {
    const seconds = windows.take(callerOf(request));
    if (seconds === 0) return;
    void reply.header('x-ratelimit-limit', windows.max).header('x-ratelimit-reset', seconds);
    throw tooManyRequests(seconds);
  };
}

interface QueuedWork {
  /** Callers take turns; each has a queue of its own. */
  readonly group: string;
  /** Ends the wait, not the work. */
  readonly signal: AbortSignal | undefined;
  /** For the 503 when the queues are full or the wait takes too long. */
  readonly detail: string;
  readonly retryAfterSeconds: number;
}

/**
 * Runs `work` when the semaphore has a permit.
 *
 * @throws HttpError 429 if the queue of the group is full; `Fault` `overloaded` if all queues are full or the signal
 *   aborts; the errors of `work`
 */
export async function withPermit<T>(
  semaphore: FairSemaphore,
  { group, signal, detail, retryAfterSeconds }: QueuedWork,
  work: () => Promise<T>,
): Promise<T> {
  let hasStarted = false;
  const start = (): Promise<T> => {
    hasStarted = true;
    return work();
  };
  try {
    return await semaphore.run(start, { group, ...(signal && { signal }) });
  } catch (error) {
    if (hasStarted) throw error;
    if (error instanceof QueueFull && error.scope === 'group') throw tooManyRequests(1);
    throw new Fault('overloaded', detail, { cause: error, retryAfterSeconds });
  }
}

/** Identifies a caller before authentication. After a disconnection there is no address, although Fastify types one. */
export function callerAddress({ ip = '' }: { readonly ip?: string }): string {
  return networkOf(ip);
}

/** An IPv6 caller owns at least a /64, so its first four groups count as one address. */
function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const [head = '', tail] = address.split('::', 2);
  const groups = head === '' ? [] : head.split(':');
  const rest = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : 8 - groups.length - rest.length;
  return [...groups, ...Array.from({ length: Math.max(0, zeros) }, () => '0'), ...rest].slice(0, 4).join(':');
}

/** A caller counts as active for this long after its last request. */
const ACTIVE_MS = 1_000;

/** Whether other organizations than one are sending requests to this process. */
export class RecentCallers {
  #last: { readonly organizationId: EntityId; atMs: number } | null = null;
  /** When the last request of another organization than the last one came. */
  #otherAtMs = -Infinity;

  note(organizationId: EntityId, nowMs = performance.now()): void {
    if (this.#last?.organizationId === organizationId) {
      this.#last.atMs = nowMs;
      return;
    }
    this.#otherAtMs = this.#last?.atMs ?? -Infinity;
    this.#last = { organizationId, atMs: nowMs };
  }

  hasOthersThan(organizationId: EntityId, nowMs = performance.now()): boolean {
    if (this.#last === null) return false;
    const atMs = this.#last.organizationId === organizationId ? this.#otherAtMs : this.#last.atMs;
    return nowMs - atMs < ACTIVE_MS;
  }
}
