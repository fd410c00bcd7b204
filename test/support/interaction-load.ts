/**
 * Writers that do all that can be done in channels, for as long as they are told to, and write down what came of
 * it. Every write leaves exactly one event, with something in it that no other has: what is compared with the log.
 */
import { randomUUID } from 'node:crypto';
import type { ApiClient } from './api-client.ts';
import type { Requests } from './history.ts';
import { asRecord } from './log-reader.ts';
import { toldOverHttp, Writers, type Random, type Told, type WritersOptions } from './writers.ts';

/** A command, as HTTP has it. */
export interface Write {
  readonly kind: string;
  readonly channelId: string;
  /** The type of the event that it leaves. */
  readonly eventType: string;
  /** Stands in the data of that event, and of no other of its type; empty where the type alone says enough. */
  readonly mark: string;
  readonly method: string;
  readonly path: string;
  readonly body?: object;
}

export interface WriteRecord extends Requests {
  readonly write: Write;
}

/** What became of one request, and what was answered, where it has happened. */
export type ToldWrite = Told & { readonly body?: Record<string, unknown> };

/** Where writers send what they write. */
export interface Entrance {
  /** Whether a command of this kind can be sent here. */
  takes(write: Write): boolean;
  send(write: Write, requestId: string, idempotencyKey: string | null): Promise<ToldWrite>;
}

/** A gateway. */
export function httpEntrance(api: ApiClient): Entrance {
  return {
    takes: () => true,
    async send({ method, path, body }, requestId, key) {
      const headers = { 'x-request-id': requestId, ...(key !== null && { 'idempotency-key': key }) };
      const { reply, ...told } = await toldOverHttp(api.request(method, path, { body, headers }));
      return reply === undefined ? told : { ...told, body: asRecord(reply.json()) };
    },
  };
}

export interface InteractionLoadOptions extends WritersOptions {
  /** Of each list: what one entrance was asked, the next may be asked again. Commands go to the lists in turns. */
  readonly entrances: readonly (readonly Entrance[])[];
  readonly channels: readonly [string, ...string[]];
}

export interface InteractionLoad {
  readonly records: readonly WriteRecord[];
  acknowledged(): number;
  /** No new commands; resolves when retries are over: acknowledged, or given up after `graceMs`. */
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

/** An interaction that one writer has posted, and what may still be done with it. */
interface Target {
  readonly path: string;
  readonly channelId: string;
  readonly spanId: string;
  readonly isUserMessage: boolean;
  open: boolean;
  dismissed: boolean;
  /** Reactions that stand, by the agent. */
  readonly reactors: string[];
}

/** Those of a writer that it goes on with; older ones that are ended are left as they are. */
const MAX_TARGETS = 30;
const MAX_OPEN = 5;
const ENDS: ReadonlySet<string> = new Set(['complete', 'fail']);
const isOpening = ({ body }: Write): boolean => body !== undefined && 'complete' in body && body.complete === false;
/** A channel's document grows with each. */
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
    const { write, told } = this.#choose(random, targets);
    // What opens or ends an interaction is sent until it has happened: a channel holds only so many open ones.
    const keyed = random(3) > 0 || ENDS.has(write.kind) || isOpening(write);
    const record: WriteRecord = { write, idempotencyKey: keyed ? randomUUID() : null, attempts: [] };
    this.records.push(record);
    const body = await this.#send(record, turn);
    if (body !== undefined) told?.(body);
    if (targets.length <= MAX_TARGETS) return;
    const ended = targets.findIndex(({ open }) => !open);
    targets.splice(Math.max(0, ended), 1);
  }

  /** With a key it is sent until it is acknowledged; without one, once. @returns the answer, if there was one */
  async #send(record: WriteRecord, turn: number): Promise<Record<string, unknown> | undefined> {
    const { write, idempotencyKey } = record;
    const taking = this.#options.entrances.filter((list) => list.every((entrance) => entrance.takes(write)));
    const entrances = taking[turn % taking.length] ?? [];
    let answer: Record<string, unknown> | undefined;
    const attempt = async (): Promise<void> => {
      const entrance = entrances[(turn + record.attempts.length) % entrances.length];
      if (entrance === undefined) throw new TypeError(`nobody takes ${write.kind}`);
      const send = (requestId: string): Promise<ToldWrite> => entrance.send(write, requestId, idempotencyKey);
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
    const told = ({ id, span_id: spanId }: Record<string, unknown>): void => {
      const path = `/api/v1/interactions/${String(id)}`;
      const rest = { isUserMessage, open: !complete, dismissed: false, reactors: [] };
      targets.push({ path, channelId, spanId: String(spanId), ...rest });
    };
    return { write, told };
  }
}

interface Choice {
  readonly write: Write;
  /** Called with the answer. */
  readonly told?: (body: Record<string, unknown>) => void;
}

/** Something that can be done with it now and will be done once; null if this time there is nothing. */
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
    if (dice < 8) return about('complete', 'InteractionCompleted.v1', to('complete', { content }));
    return about('fail', 'InteractionFailed.v1', to('fail', { reason: mark }));
  }
  if (dice < 5) {
    const emoji = EMOJIS[random(EMOJIS.length)] ?? EMOJIS[0];
    const reaction = `${path}/reactions/${encodeURIComponent(emoji)}`;
    const told = (): void => void target.reactors.push(`${reaction}?agent_id=${mark}`);
    return { ...about('react', 'ReactionAdded.v1', { method: 'PUT', path: reaction, body: { agent_id: mark } }), told };
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
