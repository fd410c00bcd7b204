import { LRUCache } from 'lru-cache';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { tooManyRequests } from './errors.ts';
import type { HttpServerOptions, RateLimit } from './server-options.ts';

/** @throws HttpError 429 with `Retry-After` once the caller has used up the window */
export type Limiter = (request: FastifyRequest, reply: FastifyReply) => void;

export interface Limiters {
  /** Before authentication, so that guessing keys has a price. */
  readonly perAddress: Limiter | undefined;
  readonly perKey: Limiter | undefined;
}

const PER_KEY: RateLimit = { max: 6_000, windowMs: 60_000 };
const PER_ADDRESS: RateLimit = { max: 30_000, windowMs: 60_000 };
/** Callers that are remembered; beyond it, whoever was not seen for longest starts anew. */
const MAX_CALLERS = 20_000;

export function createLimiters(limits: HttpServerOptions['rateLimits'] = {}): Limiters {
  const { perKey = PER_KEY, perAddress = PER_ADDRESS } = limits;
  return {
    perAddress: perAddress ? limiter(perAddress, (request) => networkOf(addressOf(request))) : undefined,
    perKey: perKey ? limiter(perKey, (request) => request.principal.keyId) : undefined,
  };
}

interface Window {
  endsAt: number;
  used: number;
}

function limiter({ max, windowMs }: RateLimit, callerOf: (request: FastifyRequest) => string): Limiter {
  const windows = new LRUCache<string, Window>({ max: MAX_CALLERS });
  return (request, reply) => {
    const caller = callerOf(request);
    const now = performance.now();
    const window = windows.get(caller);
    if (window === undefined) windows.set(caller, { endsAt: now + windowMs, used: 1 });
    else if (window.endsAt <= now) {
      window.endsAt = now + windowMs;
      window.used = 1;
    } else {
      window.used += 1;
      if (window.used <= max) return;
      const seconds = Math.max(1, Math.ceil((window.endsAt - now) / 1000));
      void reply.header('x-ratelimit-limit', max).header('x-ratelimit-reset', seconds);
      throw tooManyRequests(seconds);
    }
  };
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
