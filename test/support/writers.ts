/** Writers that send commands until they are stopped, and record the outcome of each request. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { NoReplyError, type Reply } from './api-client.ts';
import { randomFrom } from './channel-history.ts';
import type { Answer, Attempt, Requests } from './history.ts';
import { asRecord } from './log-reader.ts';

export interface WritersOptions {
  readonly writers: number;
  /** The same seed chooses the same commands; their outcomes depend on the system. */
  readonly seed: number;
  /** Pause of a writer between two commands. Default 5. */
  readonly thinkMs?: number;
}

export type Random = (below: number) => number;

/** Outcome of one request. */
export type RequestResult = Pick<Attempt, 'outcome' | 'detail'> & {
  /** Recorded with the attempt. */
  readonly answer?: Answer;
};

const RETRY_MS = 150;
/** The process is down or overloaded: an immediate retry is pointless. */
const REFUSED_MS = 50;

export class Writers {
  #acknowledged = 0;
  #stopping = false;
  #giveUpAt = Infinity;
  #clock = 0;
  #running: Promise<void>[] = [];

  /** Count of acknowledged requests so far. */
  get acknowledged(): number {
    return this.#acknowledged;
  }

  /** @param begin makes a writer, which is then called for one command after another; `turn` begins at its number */
  start({ writers, seed, thinkMs = 5 }: WritersOptions, begin: (random: Random) => (turn: number) => Promise<void>) {
    this.#running = Array.from({ length: writers }, async (_, writer) => {
      const write = begin(randomFrom(seed * 1_000 + writer));
      for (let turn = writer; !this.#stopping; turn++) {
        await write(turn);
        await delay(thinkMs);
      }
    });
  }

  /** Starts no new commands. Resolves when the writers are done; requests still open after `graceMs` are given up. */
  async stop(graceMs: number): Promise<void> {
    this.#giveUpAt = Date.now() + graceMs;
    this.#stopping = true;
    await Promise.all(this.#running);
  }

  /** One request. */
  async attempt<T extends RequestResult>(command: Requests, send: (requestId: string) => Promise<T>): Promise<T> {
    const attempt: Attempt = {
      requestId: randomUUID(),
      sentAt: ++this.#clock,
      settledAt: Infinity,
      outcome: 'unknown',
      detail: '',
      answer: null,
    };
    command.attempts.push(attempt);
    const result = await send(attempt.requestId);
    const { outcome, detail, answer = null } = result;
    Object.assign(attempt, { outcome, detail, answer, settledAt: ++this.#clock });
    if (outcome === 'acknowledged') this.#acknowledged += 1;
    else await delay(REFUSED_MS);
    return result;
  }

  /** Repeats a command while its outcome is open, until it is given up. */
  async retry(command: Requests, again: () => Promise<void>): Promise<void> {
    while (isOpen(command) && Date.now() < this.#giveUpAt) {
      await delay(RETRY_MS);
      await again();
    }
  }
}

/** Whether its caller does not know yet that it was written, or never will be. */
export function isOpen({ attempts }: Requests): boolean {
  return !attempts.some(({ outcome }) => outcome === 'acknowledged' || outcome === 'unexpected');
}

/** What a caller concludes from an answer, or from a missing one. */
export async function resultOverHttp(request: Promise<Reply>): Promise<RequestResult & { readonly reply?: Reply }> {
  try {
    const reply = await request;
    if (reply.status === 200) return { outcome: 'acknowledged', detail: '', reply };
    const detail = `${reply.status} ${String(asRecord(reply.json())['code'])}`;
    return { outcome: REFUSALS.get(detail) ?? 'unexpected', detail };
  } catch (error) {
    if (!(error instanceof NoReplyError)) throw error;
    return { outcome: error.sent ? 'unknown' : 'not_written', detail: error.message };
  }
}

/** Which refusals the failures of a test explain, and what each implies for the log. */
const REFUSALS = new Map<string, Attempt['outcome']>([
  ['503 store_unavailable', 'not_written'],
  ['503 overloaded', 'not_written'],
  ['503 stopping', 'not_written'],
  ['503 outcome_unknown', 'unknown'],
  ['503 timeout', 'unknown'],
  ['409 idempotency_in_flight', 'not_written'],
  ['409 conflict', 'not_written'],
]);
