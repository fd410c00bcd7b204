/** Commands without an answer yet: each is sent again on every new connection until it is answered. */
import type { components } from './api.generated.ts';
import { CommandError, sentenceOf } from './errors.ts';
import type { AckFrame, CommandFrame, ErrorFrame } from './frames.ts';

type Schemas = components['schemas'];

export interface CommandData {
  /** As the body of REST's `POST /api/v1/channels/{id}/interactions`. */
  readonly 'interaction.post': Schemas['InteractionPostInput'];
  readonly 'reaction.add': ReactionCommand;
  readonly 'reaction.remove': ReactionCommand;
  /** Shown to the other participants for ten seconds; never stored. See {@link TypingSignals}. */
  readonly typing: TypingCommand | undefined;
  /** The text that the run has written so far is kept. */
  readonly 'run.cancel': { readonly run_id: string };
}
export type CommandType = keyof CommandData;

export interface ReactionCommand {
  readonly interaction_id: string;
  readonly emoji: string;
  /** The agent that reacts. Default: the calling user. */
  readonly agent_id?: string;
  readonly agent_name?: string;
}

export interface TypingCommand {
  /** The agent that types. Default: the caller. */
  readonly agent_id?: string;
  /** False: no longer. Default: true. */
  readonly typing?: boolean;
}

export interface Acknowledgement {
  readonly id: string;
  /** Sequence of the channel after the command; null if it appended no event. */
  readonly seq: number | null;
}

interface Pending {
  readonly frame: CommandFrame;
  readonly answer: Promise<Acknowledgement>;
  readonly resolve: (acknowledgement: Acknowledgement) => void;
  readonly reject: (error: CommandError) => void;
  /** Whether it means nothing on a later connection. */
  readonly isTransient: boolean;
  readonly deadline: ReturnType<typeof setTimeout>;
  sent: boolean;
  /** Sent on any connection. */
  attempted: boolean;
}

/** Limit of unanswered commands; further ones are rejected. */
const MAX_PENDING = 1_000;

/** The server closes a connection after 120 frames in a minute, pongs included: fewer frames of each connection. */
const FRAMES_PER_MINUTE = 110;
/** Of commands that are sent for the first time. */
const COMMANDS_PER_MINUTE = 90;

/** Error code of a stopping server. */
const STOPPING = 'stopping';

export class CommandOutbox {
  readonly #pending = new Map<string, Pending>();
  readonly #typing = new TypingSignals();
  /** Of this connection. */
  #frames = new Budget(FRAMES_PER_MINUTE);
  readonly #commands = new Budget(COMMANDS_PER_MINUTE);
  readonly #answerWithinMs: number;

  /** @param answerWithinMs a command without an answer by then is rejected */
  constructor(answerWithinMs = 60_000) {
    this.#answerWithinMs = answerWithinMs;
  }

  get isEmpty(): boolean {
    return this.#pending.size === 0;
  }

  /**
   * @param nowMs monotonic
   * @returns false: the signal need not be sent, or would be late, because commands wait
   */
  admitTyping(data: TypingCommand | undefined, nowMs: number): boolean {
    const mustWait = [...this.#pending.values()].some(({ sent }) => !sent);
    return !mustWait && this.#typing.admit(data, nowMs);
  }

  /**
   * @param id a UUID: the server runs commands with the same id once
   * @returns resolves when the events of the command are durable
   */
  add(type: string, data: unknown, id: string = randomUuid()): Promise<Acknowledgement> {
    if (this.#pending.has(id)) return Promise.reject(new CommandError('duplicate_id', `command ${id} waits already`));
    if (this.#pending.size >= MAX_PENDING) {
      return Promise.reject(new CommandError('too_many_commands', `${MAX_PENDING} commands wait for their answers`));
    }
    const frame: CommandFrame = { frame: 'command', id, type, ...(data !== undefined && { data }) };
    let settling!: Pick<Pending, 'resolve' | 'reject'>;
    const answer = new Promise<Acknowledgement>((resolve, reject) => (settling = { resolve, reject }));
    const isTransient = type === 'typing';
    const deadline = setTimeout(() => this.#expire(id), this.#answerWithinMs);
    this.#pending.set(id, { frame, answer, ...settling, isTransient, deadline, sent: false, attempted: false });
    if (type === 'interaction.post') this.#typing.ended();
    return answer;
  }

  #expire(id: string): void {
    const fate = this.#pending.get(id)?.attempted === true ? 'was sent but not answered' : 'was not sent';
    const seconds = this.#answerWithinMs / 1_000;
    const command = this.#remove(id);
    // Programs do not wait for it.
    if (command?.isTransient === true) return command.resolve({ id, seq: null });
    command?.reject(new CommandError('timeout', `command ${id} ${fate} within ${seconds} s`));
  }

  #remove(id: string): Pending | undefined {
    const command = this.#pending.get(id);
    clearTimeout(command?.deadline);
    this.#pending.delete(id);
    return command;
  }

  /** On a new connection, unanswered commands are sent again. */
  connected(): void {
    this.#frames = new Budget(FRAMES_PER_MINUTE);
    this.#typing.ended();
    for (const [id, command] of this.#pending) {
      command.sent = false;
      if (command.isTransient) this.#remove(id)?.resolve({ id, seq: null });
    }
  }

  /**
   * Takes the commands that may be sent now, in their order.
   *
   * @param nowMs monotonic
   * @returns `againInMs`: pause until the rate allows the next command; null if none waits
   */
  take(nowMs: number, maxFrameBytes: number): { frames: readonly CommandFrame[]; againInMs: number | null } {
    const frames: CommandFrame[] = [];
    for (const [id, command] of this.#pending) {
      if (command.sent) continue;
      const bytes = new TextEncoder().encode(JSON.stringify(command.frame)).length;
      if (bytes > maxFrameBytes) {
        const reason = `${bytes} bytes, the server takes ${maxFrameBytes}: use REST`;
        this.#remove(id)?.reject(new CommandError('too_large', reason));
        continue;
      }
      const isFree = command.attempted || command.isTransient;
      const againInMs = Math.max(this.#frames.waitMs(nowMs), isFree ? 0 : this.#commands.waitMs(nowMs));
      if (againInMs > 0) return { frames, againInMs };
      this.#frames.spend(nowMs);
      if (!isFree) this.#commands.spend(nowMs);
      command.sent = true;
      command.attempted = true;
      frames.push(command.frame);
    }
    return { frames, againInMs: null };
  }

  settle(answer: AckFrame | ErrorFrame): void {
    const command = answer.id === undefined ? undefined : this.#pending.get(answer.id);
    if (command === undefined || answer.id === undefined) return;
    // The server stops: the command is sent again on the next connection.
    if (answer.frame === 'error' && answer.code === STOPPING) return;
    this.#remove(answer.id);
    if (answer.frame === 'ack') {
      command.resolve({ id: answer.id, seq: answer.seq });
      return;
    }
    const faults = typeof answer.detail === 'string' ? [] : answer.detail;
    const more = { retryAfter: answer.retry_after ?? null, faults };
    command.reject(new CommandError(answer.code, sentenceOf(answer.detail), more));
  }

  /**
   * Rejects all commands. Those that were sent may have been run.
   *
   * @param isClosed whether the program has closed the subscription: it need not await what it leaves behind
   */
  abandon(reason: string, { isClosed }: { readonly isClosed: boolean }): void {
    for (const { frame, answer, attempted, deadline, reject } of this.#pending.values()) {
      clearTimeout(deadline);
      if (isClosed) answer.catch(() => undefined);
      const fate = attempted ? 'sent but not answered' : 'not sent';
      reject(new CommandError('not_acknowledged', `${reason}; command ${frame.id} was ${fate}`));
    }
    this.#pending.clear();
  }
}

const MINUTE_MS = 60_000;

/** A number of frames in any minute. */
class Budget {
  readonly #perMinute: number;
  #spentAt: number[] = [];

  constructor(perMinute: number) {
    this.#perMinute = perMinute;
  }

  /** Milliseconds until the next frame may be sent. */
  waitMs(nowMs: number): number {
    this.#spentAt = this.#spentAt.filter((at) => at > nowMs - MINUTE_MS);
    const [oldest = nowMs] = this.#spentAt;
    return this.#spentAt.length < this.#perMinute ? 0 : Math.max(1, oldest + MINUTE_MS - nowMs);
  }

  spend(nowMs: number): void {
    this.#spentAt.push(nowMs);
  }
}

/** The server shows a signal for ten seconds. */
const TYPING_AGAIN_MS = 4_000;
const TYPING_PER_MINUTE = 15;

/**
 * Typing is signalled by every keystroke, and sent as seldom as its display allows: repetitions within four seconds are
 * merged. It has a budget of its own, above which it is dropped.
 */
class TypingSignals {
  readonly #budget = new Budget(TYPING_PER_MINUTE);
  /** By agent; '' is the caller. */
  readonly #shown = new Map<string, { readonly typing: boolean; readonly atMs: number }>();

  admit({ agent_id: agentId = '', typing = true }: TypingCommand = {}, nowMs: number): boolean {
    const shown = this.#shown.get(agentId);
    const isRepeated = shown?.typing === typing && (!typing || nowMs - shown.atMs < TYPING_AGAIN_MS);
    if (isRepeated || this.#budget.waitMs(nowMs) > 0) return false;
    this.#budget.spend(nowMs);
    this.#shown.set(agentId, { typing, atMs: nowMs });
    return true;
  }

  /** The others no longer show it: after a message of the sender, or a lost connection. */
  ended(): void {
    this.#shown.clear();
  }
}

/** A random UUID (version 4). `crypto.randomUUID` is only available to pages that were loaded over HTTPS. */
export function randomUuid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
