/** Writers that change channels over HTTP until they are stopped, and record the outcome of each request. */
import { randomUUID } from 'node:crypto';
import type { ApiClient, Reply } from './api-client.ts';
import type { Answer, Change, Operation } from './history.ts';
import { asRecord } from './log-reader.ts';
import { isOpen, resultOverHttp, Writers, type Random, type WritersOptions } from './writers.ts';

export interface LoadOptions extends WritersOptions {
  /** Writers use these in turn. */
  readonly clients: readonly [ApiClient, ...ApiClient[]];
}

export interface ChannelLoad {
  readonly operations: readonly Operation[];
  /** Count of acknowledged requests so far. */
  acknowledged(): number;
  /** Starts no new commands; resolves when retries are over: acknowledged, or given up after `graceMs`. */
  stop(graceMs: number): Promise<void>;
}

/**
 * All writers use the hot channels. The limit bounds the size of their documents, which grow with each participant.
 */
const HOT_CHANNELS = 3;
const MAX_PARTICIPANTS = 150;
/** Callers with an idempotency key retry in the background, because a lease may have to expire first. */
const MAX_RETRYING = 40;

export function startChannelLoad(options: LoadOptions): ChannelLoad {
  const writers = new Writers();
  const load = new Load(options, writers);
  writers.start(options, (random) => () => load.write(random));
  return {
    operations: load.operations,
    acknowledged: () => writers.acknowledged,
    async stop(graceMs) {
      await writers.stop(graceMs);
      await load.retriesOver();
    },
  };
}

class Load {
  readonly operations: Operation[] = [];
  readonly #options: LoadOptions;
  readonly #writers: Writers;
  readonly #channels: { id: string; participants: number }[] = [];
  readonly #retrying = new Set<Promise<void>>();
  #turn = 0;
  #values = 0;

  constructor(options: LoadOptions, writers: Writers) {
    this.#options = options;
    this.#writers = writers;
  }

  async write(random: Random): Promise<void> {
    const keyed = random(2) === 0;
    const operation: Operation = {
      change: this.#choose(random),
      idempotencyKey: keyed ? randomUUID() : null,
      attempts: [],
    };
    this.operations.push(operation);
    await this.#attempt(operation);
    if (keyed) this.#goOnInBackground(operation, random(5) === 0);
    // Without a key, a careful caller gives up and a careless one retries.
    else if (isOpen(operation) && random(2) === 0) await this.#attempt(operation);
  }

  async retriesOver(): Promise<void> {
    while (this.#retrying.size > 0) await Promise.all(this.#retrying);
  }

  #choose(random: Random): Change {
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

  /** Repeats until it is acknowledged, and sometimes once more, which must be a replay. */
  #goOnInBackground(operation: Operation, onceMore: boolean): void {
    if (!onceMore && !isOpen(operation)) return;
    if (this.#retrying.size >= MAX_RETRYING) return;
    const retry = (async () => {
      await this.#writers.retry(operation, () => this.#attempt(operation));
      if (onceMore && !isOpen(operation)) await this.#attempt(operation);
    })();
    this.#retrying.add(retry);
    void retry.finally(() => this.#retrying.delete(retry));
  }

  async #attempt(operation: Operation): Promise<void> {
    const { answer } = await this.#writers.attempt(operation, async (requestId) => {
      const { reply, ...result } = await resultOverHttp(this.#send(operation, requestId));
      return reply === undefined ? result : { ...result, answer: answerOf(reply) };
    });
    if (answer === undefined || operation.change.kind !== 'create') return;
    const { channelId } = answer;
    if (!this.#channels.some(({ id }) => id === channelId)) this.#channels.push({ id: channelId, participants: 0 });
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
