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
  /** Shown to the other participants for a few seconds; never stored. */
  readonly typing: undefined;
}
export type CommandType = keyof CommandData;

export interface ReactionCommand {
  readonly interaction_id: string;
  readonly emoji: string;
  /** The agent that reacts. Default: the calling user. */
  readonly agent_id?: string;
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
  sent: boolean;
  /** Sent on any connection. */
  attempted: boolean;
}

/** Limit of unanswered commands; further ones are rejected. */
const MAX_PENDING = 1_000;

/** Below the limit of the server, which closes a connection after 120 frames in a minute, pongs included. */
const PER_MINUTE = 90;
const MINUTE_MS = 60_000;

/** Error code of a stopping server. */
const STOPPING = 'stopping';

export class CommandOutbox {
  readonly #pending = new Map<string, Pending>();
  /** Times at which the last {@link PER_MINUTE} commands were sent. */
  #sentAt: number[] = [];

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
    this.#pending.set(id, { frame, answer, ...settling, sent: false, attempted: false });
    return answer;
  }

  /** On a new connection, unanswered commands are sent again. */
  connected(): void {
    for (const command of this.#pending.values()) command.sent = false;
  }

  /**
   * Takes the commands that may be sent now, in their order.
   *
   * @returns `againInMs`: pause until the rate allows the next command; null if none waits
   */
  take(nowMs: number, maxFrameBytes: number): { frames: readonly CommandFrame[]; againInMs: number | null } {
    const frames: CommandFrame[] = [];
    this.#sentAt = this.#sentAt.filter((at) => at > nowMs - MINUTE_MS);
    for (const [id, command] of this.#pending) {
      if (command.sent) continue;
      const bytes = new TextEncoder().encode(JSON.stringify(command.frame)).length;
      if (bytes > maxFrameBytes) {
        this.#pending.delete(id);
        command.reject(new CommandError('too_large', `${bytes} bytes, the server takes ${maxFrameBytes}: use REST`));
        continue;
      }
      if (this.#sentAt.length >= PER_MINUTE) {
        return { frames, againInMs: Math.max(1, (this.#sentAt[0] ?? nowMs) + MINUTE_MS - nowMs) };
      }
      command.sent = true;
      command.attempted = true;
      this.#sentAt.push(nowMs);
      frames.push(command.frame);
    }
    return { frames, againInMs: null };
  }

  settle(answer: AckFrame | ErrorFrame): void {
    const command = answer.id === undefined ? undefined : this.#pending.get(answer.id);
    if (command === undefined || answer.id === undefined) return;
    // The server stops: the command is sent again on the next connection.
    if (answer.frame === 'error' && answer.code === STOPPING) return;
    this.#pending.delete(answer.id);
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
    for (const { frame, answer, attempted, reject } of this.#pending.values()) {
      if (isClosed) answer.catch(() => undefined);
      const fate = attempted ? 'sent but not answered' : 'not sent';
      reject(new CommandError('not_acknowledged', `${reason}; command ${frame.id} was ${fate}`));
    }
    this.#pending.clear();
  }
}

/** A random UUID (version 4). `crypto.randomUUID` is only available to pages that were loaded over HTTPS. */
function randomUuid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
