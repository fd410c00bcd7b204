/** Writers that change channels over HTTP for as long as they are told to, and write down what came of it. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { NoReplyError, type ApiClient, type Reply } from './api-client.ts';
import { randomFrom } from './channel-history.ts';
import type { Answer, Attempt, Change, Operation, Requests } from './history.ts';
import { asRecord } from './log-reader.ts';

export interface LoadOptions {
  /** Writers take turns on these. */
  readonly clients: readonly [ApiClient, ...ApiClient[]];
  readonly writers: number;
  /** The same seed chooses the same commands; what becomes of them is up to the system. */
  readonly seed: number;
  /** Pause of a writer between two commands. Default 5. */
  readonly thinkMs?: number;
}

export interface ChannelLoad {
  readonly operations: readonly Operation[];
  /** How many requests were acknowledged so far. */
  acknowledged(): number;
  /** No new commands; resolves when retries are over: acknowledged, or given up after `graceMs`. */
  stop(graceMs: number): Promise<void>;
}

/** Hot channels are shared by all writers; a document grows with each participant, so those have an end. */
const HOT_CHANNELS = 3;
const MAX_PARTICIPANTS = 150;
/** A caller with an idempotency key goes on in the background, for a lease may have to end first. */
const MAX_RETRYING = 40;
const RETRY_MS = 150;

export function startChannelLoad(options: LoadOptions): ChannelLoad {
  const load = new Load(options);
  const writers = Array.from({ length: options.writers }, (_, index) => load.write(index));
  return {
    operations: load.operations,
    acknowledged: () => load.acknowledged,
    async stop(graceMs) {
      load.stopping = true;
      load.giveUpAt = Date.now() + graceMs;
      await Promise.all(writers);
      await load.retriesOver();
    },
  };
}

class Load {
  readonly operations: Operation[] = [];
  acknowledged = 0;
  stopping = false;
  giveUpAt = Infinity;
  readonly #options: LoadOptions;
  readonly #channels: { id: string; participants: number }[] = [];
  readonly #retrying = new Set<Promise<void>>();
  #clock = 0;
  #turn = 0;
  #values = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  async write(writer: number): Promise<void> {
    const random = randomFrom(this.#options.seed * 1_000 + writer);
    while (!this.stopping) {
      const keyed = random(2) === 0;
      const operation: Operation = {
        change: this.#choose(random),
        idempotencyKey: keyed ? randomUUID() : null,
        attempts: [],
      };
      this.operations.push(operation);
      await this.#attempt(operation);
      if (keyed) this.#goOnInBackground(operation, random(5) === 0);
      // Without a key a careful caller gives up, and a careless one sends it again.
      else if (isOpen(operation) && random(2) === 0) await this.#attempt(operation);
      await delay(this.#options.thinkMs ?? 5);
    }
  }

  async retriesOver(): Promise<void> {
    while (this.#retrying.size > 0) await Promise.all(this.#retrying);
  }

  #choose(random: (below: number) => number): Change {
    this.#values += 1;
    const value = `${this.#options.seed}/${this.#values}`;
    const hot = random(10) < 8 ? Math.min(HOT_CHANNELS, this.#channels.length) : this.#channels.length;
    const channel = hot === 0 ? undefined : this.#channels[random(hot)];
    const dice = random(20);
    if (channel === undefined || dice < 2) return { kind: 'create', name: `created ${value}` };
    if (dice < 5 && channel.participants < MAX_PARTICIPANTS) {
      channel.participants += 1;
      return { kind: 'participant', channelId: channel.id, tag: value };
    }
    if (dice < 11) return { kind: 'meta', channelId: channel.id, counter: this.#values };
    return { kind: 'rename', channelId: channel.id, name: `renamed ${value}` };
  }

  /** Repeats until it is acknowledged; sometimes once more, which must be a replay. */
  #goOnInBackground(operation: Operation, onceMore: boolean): void {
    if (!onceMore && !isOpen(operation)) return;
    if (this.#retrying.size >= MAX_RETRYING) return;
    const retry = (async () => {
      while (isOpen(operation) && Date.now() < this.giveUpAt) {
        await delay(RETRY_MS);
        await this.#attempt(operation);
      }
      if (onceMore && !isOpen(operation)) await this.#attempt(operation);
    })();
    this.#retrying.add(retry);
    void retry.finally(() => this.#retrying.delete(retry));
  }

  async #attempt(operation: Operation): Promise<void> {
    const attempt: Attempt = {
      requestId: randomUUID(),
      sentAt: ++this.#clock,
      settledAt: Infinity,
      outcome: 'unknown',
      detail: '',
      answer: null,
    };
    operation.attempts.push(attempt);
    try {
      this.#settle(attempt, await this.#send(operation, attempt.requestId));
    } catch (error) {
      if (!(error instanceof NoReplyError)) throw error;
      attempt.detail = error.message;
      if (!error.sent) attempt.outcome = 'not_written';
      // The process is away: no use in asking again at once.
      await delay(50);
    }
    attempt.settledAt = ++this.#clock;
    if (attempt.outcome !== 'acknowledged' || attempt.answer === null) return;
    this.acknowledged += 1;
    const { channelId } = attempt.answer;
    if (operation.change.kind === 'create' && !this.#channels.some(({ id }) => id === channelId)) {
      this.#channels.push({ id: channelId, participants: 0 });
    }
  }

  #send({ change, idempotencyKey }: Operation, requestId: string): Promise<Reply> {
    const { clients } = this.#options;
    const client = clients[this.#turn++ % clients.length] ?? clients[0];
    const headers = { 'x-request-id': requestId, ...(idempotencyKey && { 'idempotency-key': idempotencyKey }) };
    const path = change.kind === 'create' ? '/api/v1/channels' : `/api/v1/channels/${change.channelId}`;
    switch (change.kind) {
      case 'create':
        return client.post(path, { name: change.name, participants: [] }, { headers });
      case 'rename':
        return client.patch(path, { name: change.name }, { headers });
      case 'meta':
        return client.patch(path, { meta_data: { counter: change.counter } }, { headers });
      case 'participant': {
        const participant = { type: 'external_agent', agent_metadata: { tag: change.tag } };
        return client.post(`${path}/participants`, participant, { headers });
      }
    }
  }

  #settle(attempt: Attempt, reply: Reply): void {
    if (reply.status === 200) {
      attempt.outcome = 'acknowledged';
      attempt.answer = answerOf(reply);
      return;
    }
    Object.assign(attempt, refusalOf(reply));
  }
}

/** What a caller is to think of an answer other than 200. */
export function refusalOf(reply: Reply): Pick<Attempt, 'outcome' | 'detail'> {
  const detail = `${reply.status} ${String(asRecord(reply.json())['code'])}`;
  return { detail, outcome: OUTCOMES.get(detail) ?? 'unexpected' };
}

/** Which refusals the failures of a test explain, and what each says about the log. */
const OUTCOMES = new Map<string, Attempt['outcome']>([
  ['503 store_unavailable', 'not_written'],
  ['503 overloaded', 'not_written'],
  ['503 stopping', 'not_written'],
  ['503 outcome_unknown', 'unknown'],
  ['503 timeout', 'unknown'],
  ['409 idempotency_in_flight', 'not_written'],
  ['409 conflict', 'not_written'],
]);

/** Whether its caller does not know yet that it has happened, or never will. */
export function isOpen({ attempts }: Requests): boolean {
  return !attempts.some(({ outcome }) => outcome === 'acknowledged' || outcome === 'unexpected');
}

export function answerOf(reply: Reply): Answer {
  const body = asRecord(reply.json());
  return { channelId: String(body['id']), revision: revisionOf(reply), body };
}

export function revisionOf(reply: Reply): number {
  const etag = /^"(\d+)"$/.exec(reply.headers.etag ?? '');
  if (!etag) throw new TypeError(`no ETag in ${reply.status} ${reply.text}`);
  return Number(etag[1]);
}
