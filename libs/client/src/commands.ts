/** Commands on their way: each is sent until it is answered, over as many connections as that takes. */
import type { components } from './api.generated.ts';
import { CommandError } from './errors.ts';
import { sentenceOf } from './follower.ts';
import type { AckFrame, CommandFrame, ErrorFrame } from './frames.ts';
import { randomUuid } from './uuid.ts';

type Schemas = components['schemas'];

/** `data` of each type of command. */
export interface CommandData {
  /** As the body of REST's `POST /api/v1/channels/{id}/interactions`. */
  readonly 'interaction.post': Schemas['InteractionPostInput'];
  readonly 'reaction.add': ReactionCommand;
  readonly 'reaction.remove': ReactionCommand;
  /** Shown to the others for a few seconds; never stored. */
  readonly typing: undefined;
}
export type CommandType = keyof CommandData;

export interface ReactionCommand {
  readonly interaction_id: string;
  readonly emoji: string;
  /** The agent that reacts; without it, the calling user. */
  readonly agent_id?: string;
}

export interface Acknowledgement {
  readonly id: string;
  /** The channel after it; null for what leaves nothing in the channel. */
  readonly seq: number | null;
}

interface Pending {
  readonly frame: CommandFrame;
  readonly resolve: (acknowledgement: Acknowledgement) => void;
  readonly reject: (error: CommandError) => void;
  /** On this connection. */
  sent: boolean;
  /** On any. */
  attempted: boolean;
}

/** More than these cannot wait: whoever sends faster than the server takes is told so. */
const MAX_PENDING = 1_000;

/** The server closes a connection that sends more than 120 frames a minute; pongs and the like count, too. */
const PER_MINUTE = 90;
const MINUTE_MS = 60_000;

/** Code of the error by which a server that stops refuses commands. */
const STOPPING = 'stopping';

export class CommandOutbox {
  readonly #pending = new Map<string, Pending>();
  /** When the last {@link PER_MINUTE} were sent. */
  #sentAt: number[] = [];

  /**
   * @param id a UUID: the server does a command once, however often it comes with the same one
   * @returns resolves when what the command wrote is durable
   */
  add(type: string, data: unknown, id: string = randomUuid()): Promise<Acknowledgement> {
    if (this.#pending.has(id)) return Promise.reject(new CommandError('duplicate_id', `command ${id} waits already`));
    if (this.#pending.size >= MAX_PENDING) {
      return Promise.reject(new CommandError('too_many_commands', `${MAX_PENDING} commands wait for their answers`));
    }
    return new Promise((resolve, reject) => {
      const frame: CommandFrame = { frame: 'command', id, type, ...(data !== undefined && { data }) };
      this.#pending.set(id, { frame, resolve, reject, sent: false, attempted: false });
    });
  }

  /** A new connection: what was not answered is sent once more. */
  connected(): void {
    for (const command of this.#pending.values()) command.sent = false;
  }

  /**
   * Takes what may be sent now, in the order in which it came.
   *
   * @returns `againInMs`: when the rate allows the next one; null if there is none
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
    // The server goes away: the next connection is to another one.
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

  /** Nobody answers them any more. What was sent may have been done all the same. */
  abandon(reason: string): void {
    for (const { frame, attempted, reject } of this.#pending.values()) {
      const fate = attempted ? 'sent, and not answered' : 'not sent';
      reject(new CommandError('not_acknowledged', `${reason}; command ${frame.id} was ${fate}`));
    }
    this.#pending.clear();
  }
}
