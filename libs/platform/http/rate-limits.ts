import rateLimit from '@fastify/rate-limit';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { tooManyRequests } from './errors.ts';
import type { HttpApp, HttpServerOptions, RateLimit } from './server-options.ts';

/** @throws HttpError 429 with `Retry-After` once the caller has used up the window */
export type Limiter = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

export interface Limiters {
  /** Before authentication, so that guessing keys has a price. */
  readonly perAddress: Limiter | undefined;
  readonly perKey: Limiter | undefined;
}

const PER_KEY: RateLimit = { max: 6_000, windowMs: 60_000 };
const PER_ADDRESS: RateLimit = { max: 30_000, windowMs: 60_000 };

/** Counts are kept in this process: behind n gateways a caller gets up to n times the limit. */
export async function createLimiters(app: HttpApp, limits: HttpServerOptions['rateLimits'] = {}): Promise<Limiters> {
  await app.register(rateLimit, { global: false });
  const { perKey = PER_KEY, perAddress = PER_ADDRESS } = limits;
  return {
    perAddress: perAddress ? limiter(app, perAddress) : undefined,
    perKey: perKey ? limiter(app, perKey, (request) => request.principal.keyId) : undefined,
  };
}

function limiter(app: HttpApp, { max, windowMs }: RateLimit, keyOf?: (request: FastifyRequest) => string): Limiter {
  const count = app.createRateLimit({ max, timeWindow: windowMs, ...(keyOf && { keyGenerator: keyOf }) });
  return async (request, reply) => {
    const usage = await count(request);
    if (usage.isAllowed || !usage.isExceeded) return;
    void reply.header('x-ratelimit-limit', usage.max).header('x-ratelimit-reset', usage.ttlInSeconds);
    throw tooManyRequests(Math.max(1, usage.ttlInSeconds));
  };
}
