import type { FastifyReply, FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import { Fault } from '#libs/kernel/faults.ts';
import { FairSemaphore, QueueFull } from '../lifecycle/index.ts';
import { tooManyRequests } from './errors.ts';
import { callerAddress } from './rate-limits.ts';
import type { HttpServerOptions } from './server-options.ts';

/** How long an organization, or an address, may read the past: this part of the time, and so much more at first. */
const SHARE = 0.25;
const BURST_MS = 5_000;
const READS_AT_ONCE = 2;
const MAX_WAITING = 128;
const MAX_WAITING_PER_ORGANIZATION = 32;
/** With the read itself, whose first look at the log takes at most 3 s, a request is answered within 5 s. */
const MAX_WAIT_MS = 2_000;
const MAX_CALLERS = 20_000;

interface Balance {
  readonly ms: number;
  readonly atMs: number;
}

/** Time that callers may spend; it comes back at {@link SHARE}. */
class TimeBudgets {
  readonly #clock: () => number;
  readonly #balances = new LRUCache<string, Balance>({ max: MAX_CALLERS });

  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** @returns 0, or the seconds until the caller has time to spend again */
  secondsUntilFree(caller: string): number {
    const left = this.#left(caller);
    return left > 0 ? 0 : Math.max(1, Math.ceil(-left / SHARE / 1000));
  }

  charge(caller: string, ms: number): void {
    this.#balances.set(caller, { ms: this.#left(caller) - ms, atMs: this.#clock() });
  }

  #left(caller: string): number {
    const balance = this.#balances.get(caller);
    return balance === undefined ? BURST_MS : Math.min(BURST_MS, balance.ms + (this.#clock() - balance.atMs) * SHARE);
  }
}

export interface PastReader {
  readonly organizationId: string;
  readonly address: string;
  /** Aborts when the answer is no longer wanted. */
  readonly signal: AbortSignal;
}

/**
 * Bounds reads of the past (`as_of`): each is folded from the log and may take a hundred times as long as a read of
 * the present, on the thread that serves everything else.
 *
 * Guarantees: two run at a time, for which organizations take turns; a bounded number waits, for a bounded time; an
 * organization or address that has used up its reading time is refused until some of it has come back.
 */
export class PastReads {
  readonly #clock: () => number;
  readonly #organizations: TimeBudgets | null;
  readonly #addresses: TimeBudgets | null;
  readonly #turns = new FairSemaphore({
    permits: READS_AT_ONCE,
    maxWaiting: MAX_WAITING,
    maxWaitingInGroup: MAX_WAITING_PER_ORGANIZATION,
  });

  /** @param options.rateLimits a limit that is switched off there is off here, too */
  constructor(
    { rateLimits = {} }: Pick<HttpServerOptions, 'rateLimits'>,
    clock: () => number = () => performance.now(),
  ) {
    this.#clock = clock;
    this.#organizations = rateLimits.perKey === false ? null : new TimeBudgets(clock);
    this.#addresses = rateLimits.perAddress === false ? null : new TimeBudgets(clock);
  }

  /** @throws HttpError 429 beyond the caller's share; `Fault` `overloaded` when too many others wait */
  async run<T>(reader: PastReader, read: () => Promise<T>): Promise<T> {
    this.#refuseIfSpent(reader);
    const signal = AbortSignal.any([reader.signal, AbortSignal.timeout(MAX_WAIT_MS)]);
    let runs = false;
    try {
      return await this.#turns.run(
        () => {
          runs = true;
          this.#refuseIfSpent(reader);
          return this.#charged(reader, read);
        },
        { group: reader.organizationId, signal },
      );
    } catch (error) {
      if (runs) throw error;
      if (error instanceof QueueFull && error.scope === 'group') throw tooManyRequests(1);
      throw new Fault('overloaded', 'Too many reads of the past are waiting', { cause: error, retryAfterSeconds: 2 });
    }
  }

  #refuseIfSpent({ organizationId, address }: PastReader): void {
    const ofOrganization = this.#organizations?.secondsUntilFree(organizationId) ?? 0;
    const seconds = Math.max(ofOrganization, this.#addresses?.secondsUntilFree(address) ?? 0);
    if (seconds > 0) throw tooManyRequests(seconds);
  }

  /** What fails has waited for a store rather than used this process, and is not charged. */
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
