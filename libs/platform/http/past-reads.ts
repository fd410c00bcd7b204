import type { FastifyReply, FastifyRequest } from 'fastify';
import { recentlyUsed } from '../caches/index.ts';
import { FairSemaphore } from '../lifecycle/index.ts';
import { tooManyRequests } from './errors.ts';
import { callerAddress, withPermit } from './rate-limits.ts';
import type { HttpServerOptions } from './server-options.ts';

/** Part of the time that an organization or address may spend on reads of the past, and its initial budget. */
const REFILL_RATE = 0.25;
const BURST_MS = 5_000;
const READS_AT_ONCE = 2;
const MAX_WAITING = 128;
const MAX_WAITING_PER_ORGANIZATION = 32;
/** The first read of the log takes at most 3 s, so a request is answered within 5 s. */
const MAX_WAIT_MS = 2_000;
const MAX_CALLERS = 20_000;

interface Balance {
  readonly ms: number;
  readonly atMs: number;
}

/** Time that callers may spend; refilled at {@link REFILL_RATE}. */
class TimeBudgets {
  readonly #clock: () => number;
  readonly #balances = recentlyUsed<string, Balance>(MAX_CALLERS);

  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** @returns 0, or the seconds until the caller's budget is positive again */
  secondsUntilFree(caller: string): number {
    const left = this.#left(caller);
    return left > 0 ? 0 : Math.max(1, Math.ceil(-left / REFILL_RATE / 1000));
  }

  charge(caller: string, ms: number): void {
    this.#balances.set(caller, { ms: this.#left(caller) - ms, atMs: this.#clock() });
  }

  #left(caller: string): number {
    const balance = this.#balances.get(caller);
    return balance === undefined
      ? BURST_MS
      : Math.min(BURST_MS, balance.ms + (this.#clock() - balance.atMs) * REFILL_RATE);
  }
}

export interface PastReader {
  readonly organizationId: string;
  readonly address: string;
  /** Aborts when the caller disconnects. */
  readonly signal: AbortSignal;
}

/**
 * Bounds reads of the past (`as_of`): each folds events from the log and may take a hundred times as long as a read of
 * the present, on the thread that serves everything else.
 *
 * Guarantees: at most two run at a time, for which organizations take turns; the queues and the wait are bounded; an
 * organization or address that has used up its time is refused until its budget is refilled.
 */
export class PastReads {
  readonly #clock: () => number;
  readonly #organizations: TimeBudgets | null;
  readonly #addresses: TimeBudgets | null;
  readonly #permits = new FairSemaphore({
    permits: READS_AT_ONCE,
    maxWaiting: MAX_WAITING,
    maxWaitingInGroup: MAX_WAITING_PER_ORGANIZATION,
  });

  /** @param options.rateLimits a limit that is off there is off here */
  constructor(
    { rateLimits = {} }: Pick<HttpServerOptions, 'rateLimits'>,
    clock: () => number = () => performance.now(),
  ) {
    this.#clock = clock;
    this.#organizations = rateLimits.perKey === false ? null : new TimeBudgets(clock);
    this.#addresses = rateLimits.perAddress === false ? null : new TimeBudgets(clock);
  }

  /** @throws HttpError 429 beyond the caller's budget; `Fault` `overloaded` if the queues are full */
  async run<T>(reader: PastReader, read: () => Promise<T>): Promise<T> {
    this.#refuseIfSpent(reader);
    const signal = AbortSignal.any([reader.signal, AbortSignal.timeout(MAX_WAIT_MS)]);
    const detail = 'Too many reads of the past are waiting';
    return withPermit(this.#permits, { group: reader.organizationId, signal, detail, retryAfterSeconds: 2 }, () => {
      this.#refuseIfSpent(reader);
      return this.#charged(reader, read);
    });
  }

  #refuseIfSpent({ organizationId, address }: PastReader): void {
    const ofOrganization = this.#organizations?.secondsUntilFree(organizationId) ?? 0;
    const seconds = Math.max(ofOrganization, this.#addresses?.secondsUntilFree(address) ?? 0);
    if (seconds > 0) throw tooManyRequests(seconds);
  }

  /** A failed read is not charged: it has waited for a store rather than used this process. */
  async #charged<T>({ organizationId, address }: PastReader, read: () => Promise<T>): Promise<T> {
    const startedMs = this.#clock();
    const result = await read();
    const spentMs = this.#clock() - startedMs;
    this.#organizations?.charge(organizationId, spentMs);
    this.#addresses?.charge(address, spentMs);
    return result;
  }
}

/** Runs a read of the past for a request. @throws as {@link PastReads.run} */
export async function readPast<T>(request: FastifyRequest, reply: FastifyReply, read: () => Promise<T>): Promise<T> {
  const closed = new AbortController();
  const onClose = (): void => closed.abort();
  reply.raw.once('close', onClose);
  const { organizationId } = request.principal;
  const reader = { organizationId, address: callerAddress(request), signal: closed.signal };
  try {
    return await request.server.pastReads.run(reader, read);
  } finally {
    reply.raw.off('close', onClose);
  }
}
