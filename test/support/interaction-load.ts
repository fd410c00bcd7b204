/**
 * Writers that send every kind of command in channels until they are stopped, and record the outcomes. Every write
 * leaves exactly one event with a value that no other event has, so that it can be compared with the log.
 */
import { randomUUID } from 'node:crypto';
import type { ApiClient } from './api-client.ts';
import type { Requests } from './history.ts';
import { asRecord } from './log-reader.ts';
import { resultOverHttp, Writers, type Random, type RequestResult, type WritersOptions } from './writers.ts';

/** A command as an HTTP request. */
export interface Write {
  readonly kind: string;
  readonly channelId: string;
  /** Type of the event that it writes. */
  readonly eventType: string;
  /** Unique value in the data of that event, among events of its type; empty where the type alone is enough. */
  readonly mark: string;
  readonly method: string;
  readonly path: string;
  readonly body?: object;
}

export interface WriteRecord extends Requests {
  readonly write: Write;
}

/** Outcome of one request, and its answer if it was acknowledged. */
export type WriteResult = RequestResult & { readonly body?: Record<string, unknown> };

/** Receiver of the writers' commands. */
export interface Endpoint {
  /** Whether it supports this kind of command. */
  supports(write: Write): boolean;
  send(write: Write, requestId: string, idempotencyKey: string | null): Promise<WriteResult>;
}

/** A gateway. */
export function httpEndpoint(api: ApiClient): Endpoint {
  return {
    supports: () => true,
    async send({ method, path, body }, requestId, key) {
      const headers = { 'x-request-id': requestId, ...(key !== null && { 'idempotency-key': key }) };
      const { reply, ...result } = await resultOverHttp(api.request(method, path, { body, headers }));
      return reply === undefined ? result : { ...result, body: asRecord(reply.json()) };
    },
  };
}

export interface InteractionLoadOptions extends WritersOptions {
  /** Commands go to the lists in turn; within a list, a retry goes to the next endpoint. */
  readonly endpoints: readonly (readonly Endpoint[])[];
  readonly channels: readonly [string, ...string[]];
}

export interface InteractionLoad {
  readonly records: readonly WriteRecord[];
  acknowledged(): number;
  /** Starts no new commands; resolves when retries are over: acknowledged, or given up after `graceMs`. */
  stop(graceMs: number): Promise<void>;
}

export function startInteractionLoad(options: InteractionLoadOptions): InteractionLoad {
  const writers = new Writers();
  const load = new Load(options, writers);
  writers.start(options, (random) => {
    const targets: Target[] = [];
    return (turn) => load.write({ random, targets, turn });
  });
  return {
    records: load.records,
    acknowledged: () => writers.acknowledged,
    stop: (graceMs) => writers.stop(graceMs),
  };
}

/** An interaction that one writer has posted, and the commands that are still possible on it. */
interface Target {
  readonly path: string;
  readonly channelId: string;
  readonly spanId: string;
  readonly isUserMessage: boolean;
  open: boolean;
  dismissed: boolean;
  /** Agents whose reactions are present. */
  readonly reactors: string[];
}

/** Bounds the interactions that a writer continues; ended ones are dropped first. */
const MAX_TARGETS = 30;
const MAX_OPEN = 5;
const ENDS: ReadonlySet<string> = new Set(['complete', 'fail']);
const isOpening = ({ body }: Write): boolean => body !== undefined && 'complete' in body && body.complete === false;
/** A channel's document grows with each participant. */
const MAX_PARTICIPANTS = 40;
const EMOJIS = ['👍', '🎉', '👩🏽‍🚀'] as const;

class Load {
  readonly records: WriteRecord[] = [];
  readonly #options: InteractionLoadOptions;
  readonly #writers: Writers;
  #marks = 0;
  #participants = 0;

  constructor(options: InteractionLoadOptions, writers: Writers) {
    this.#options = options;
    this.#writers = writers;
  }

  async write({ random, targets, turn }: { random: Random; targets: Target[]; turn: number }): Promise<void> {
    const { write, onAnswer } = this.#choose(random, targets);
    // Commands that open or end an interaction are retried until they are done, because the channel limits open ones.
    const keyed = random(3) > 0 || ENDS.has(write.kind) || isOpening(write);
    const record: WriteRecord = { write, idempotencyKey: keyed ? randomUUID() : null, attempts: [] };
    this.records.push(record);
    const body = await this.#send(record, turn);
    if (body !== undefined) onAnswer?.(body);
    if (targets.length <= MAX_TARGETS) return;
    const ended = targets.findIndex(({ open }) => !open);
    targets.splice(Math.max(0, ended), 1);
  }

  /**
   * With a key, it is retried until it is acknowledged; without one, it is sent once.
   * @returns the answer, if there was one
   */
  async #send(record: WriteRecord, turn: number): Promise<Record<string, unknown> | undefined> {
    const { write, idempotencyKey } = record;
    const supporting = this.#options.endpoints.filter((list) => list.every((endpoint) => endpoint.supports(write)));
    const endpoints = supporting[turn % supporting.length] ?? [];
    let answer: Record<string, unknown> | undefined;
    const attempt = async (): Promise<void> => {
      const endpoint = endpoints[(turn + record.attempts.length) % endpoints.length];
      if (endpoint === undefined) throw new TypeError(`no endpoint supports ${write.kind}`);
      const send = (requestId: string): Promise<WriteResult> => endpoint.send(write, requestId, idempotencyKey);
      answer = (await this.#writers.attempt(record, send)).body;
    };
    await attempt();
    if (idempotencyKey !== null) await this.#writers.retry(record, attempt);
    return answer;
  }

  #choose(random: Random, targets: Target[]): Choice {
    const mark = `mark-${this.#options.seed}-${++this.#marks}x`;
    const dice = random(20);
    if (dice < 2) return this.#onChannel(random, mark);
    const target = targets[random(Math.max(1, targets.length))];
    if (target === undefined || dice < 9) return this.#post(random, targets, mark);
    return onTarget(target, { random, mark }) ?? this.#post(random, targets, mark);
  }

  #channel(random: Random): string {
    const { channels } = this.#options;
    return channels[random(channels.length)] ?? channels[0];
  }

  #onChannel(random: Random, mark: string): Choice {
    const channelId = this.#channel(random);
    const path = `/api/v1/channels/${channelId}`;
    if (random(3) > 0 || this.#participants >= MAX_PARTICIPANTS) {
      const about = { kind: 'rename', eventType: 'ChannelRenamed.v1', method: 'PATCH', path };
      return { write: { ...about, channelId, mark, body: { name: `renamed ${mark}` } } };
    }
    this.#participants += 1;
    const about = { kind: 'join', eventType: 'ParticipantAdded.v1', method: 'POST', path: `${path}/participants` };
    return { write: { ...about, channelId, mark, body: { type: 'external_agent', agent_metadata: { tag: mark } } } };
  }

  #post(random: Random, targets: Target[], mark: string): Choice {
    const parent = random(3) === 0 ? targets[random(Math.max(1, targets.length))] : undefined;
    const channelId = parent?.channelId ?? this.#channel(random);
    const open = targets.filter((target) => target.open).length;
    const [complete, isUserMessage] = [random(3) > 0 || open >= MAX_OPEN, random(2) === 0];
    const write: Write = {
      kind: 'post',
      channelId,
      mark,
      eventType: 'InteractionPosted.v1',
      method: 'POST',
      path: `/api/v1/channels/${channelId}/interactions`,
      body: {
        content: [{ type: 'text', text: `${mark} – ü 🎈` }],
        complete,
        ...(!isUserMessage && { participant: { type: 'agent', agent_id: `agent-${random(3)}` } }),
        ...(parent && { parent_span_id: parent.spanId }),
      },
    };
    const onAnswer = ({ id, span_id: spanId }: Record<string, unknown>): void => {
      const path = `/api/v1/interactions/${String(id)}`;
      const rest = { isUserMessage, open: !complete, dismissed: false, reactors: [] };
      targets.push({ path, channelId, spanId: String(spanId), ...rest });
    };
    return { write, onAnswer };
  }
}

interface Choice {
  readonly write: Write;
  /** Called with the answer. */
  readonly onAnswer?: (body: Record<string, unknown>) => void;
}

/** A command that is possible on it now and is sent once; null if there is none this time. */
function onTarget(target: Target, { random, mark }: { readonly random: Random; readonly mark: string }): Choice | null {
  const { path, channelId } = target;
  const about = (kind: string, eventType: string, rest: Pick<Write, 'method' | 'path' | 'body'>, marked = mark) => ({
    write: { kind, eventType, channelId, mark: marked, ...rest },
  });
  const content = [{ type: 'text', text: mark }];
  const dice = random(10);
  if (target.open) {
    const to = (end: string, body: object) => ({ method: 'POST', path: `${path}/${end}`, body });
    if (dice < 5) return about('append', 'InteractionContentAppended.v1', to('content', { content }));
    target.open = false;
    if (dice < 8) return about('complete', 'InteractionCompleted.v2', to('complete', { content }));
    return about('fail', 'InteractionFailed.v1', to('fail', { reason: mark }));
  }
  if (dice < 5) {
    const emoji = EMOJIS[random(EMOJIS.length)] ?? EMOJIS[0];
    const reaction = `${path}/reactions/${encodeURIComponent(emoji)}`;
    const onAnswer = (): void => void target.reactors.push(`${reaction}?agent_id=${mark}`);
    return {
      ...about('react', 'ReactionAdded.v1', { method: 'PUT', path: reaction, body: { agent_id: mark } }),
      onAnswer,
    };
  }
  if (dice < 7) {
    const reaction = target.reactors.pop();
    if (reaction === undefined) return null;
    const withdrawn = reaction.slice(reaction.indexOf('=') + 1);
    return about('withdraw', 'ReactionRemoved.v1', { method: 'DELETE', path: reaction }, withdrawn);
  }
  if (!target.isUserMessage) return null;
  if (dice < 9) {
    const read = { method: 'POST', path: `${path}/read_receipts`, body: { agent_id: mark } };
    return about('receipt', 'ReadReceiptRecorded.v1', read);
  }
  if (target.dismissed) return null;
  target.dismissed = true;
  const dismiss = { method: 'POST', path: `${path}/mention_invite_prompt/dismiss` };
  return about('dismiss', 'MentionInvitePromptDismissed.v1', dismiss, '');
}
