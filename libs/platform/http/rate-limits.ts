import type { IncomingMessage } from 'node:http';

import proxyAddr from '@fastify/proxy-addr';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import { tooManyRequests } from './errors.ts';
import type { HttpServerOptions, RateLimit } from './server-options.ts';

/** @throws HttpError 429 with `Retry-After` once the caller has used up the window */
export type Limiter = (request: FastifyRequest, reply: FastifyReply) => void;

export interface Limiters {
  /** Before authentication, so that guessing keys has a price. */
  readonly perAddress: Limiter | undefined;
  readonly perKey: Limiter | undefined;
  /** Seconds until the address may ask for a websocket again, 0 for now. Counted with its other requests. */
  readonly upgradeAfter: (request: IncomingMessage) => number;
}

const PER_KEY: RateLimit = { max: 6_000, windowMs: 60_000 };
const PER_ADDRESS: RateLimit = { max: 30_000, windowMs: 60_000 };
/** Callers that are remembered; beyond it, whoever was not seen for longest starts anew. */
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
    // No request of Fastify's, which would have found the address in the same way.
    upgradeAfter: (request) => addresses?.take(networkOf(addressOf({ ip: proxyAddr(request, isTrusted) }))) ?? 0,
  };
}

interface Window {
  endsAt: number;
  used: number;
}

/** Fixed windows of callers; counted in this process. */
export class Windows {
  readonly max: number;
  readonly #windowMs: number;
  readonly #windows = new LRUCache<string, Window>({ max: MAX_CALLERS });

  constructor({ max, windowMs }: RateLimit) {
    this.max = max;
    this.#windowMs = windowMs;
  }

  /** @returns 0, or the seconds that are left of a window which the caller has used up */
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

  /** As `take`, without counting anything. */
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

/** What a caller is known by before authentication. */
export function callerAddress(request: FastifyRequest): string {
  return networkOf(addressOf(request));
}

/** A caller that is gone by now has no address any more, whatever the types say. */
function addressOf({ ip }: { readonly ip?: string }): string {
  return ip ?? '';
}

/** An IPv6 caller owns at least a /64: its first four groups count as one. */
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
