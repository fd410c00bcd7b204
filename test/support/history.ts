/** What the writers of a test sent and what they were told: the one side of what a checker compares. */
import type { ChannelResource } from './channel-fold.ts';

/** What a command is meant to do. Every value is used once, so that an event says which operation made it. */
export type Change =
  | { readonly kind: 'create'; readonly name: string }
  | { readonly kind: 'rename'; readonly channelId: string; readonly name: string }
  | { readonly kind: 'meta'; readonly channelId: string; readonly counter: number }
  | { readonly kind: 'participant'; readonly channelId: string; readonly tag: string };

/** What the caller knows afterwards about one request. */
export type Outcome =
  /** 2xx: it has happened, and lasts. */
  | 'acknowledged'
  /** An answer, or the lack of a connection, that says that this request has written nothing. */
  | 'not_written'
  /** No answer, or one that leaves it open. */
  | 'unknown'
  /** An answer that no failure of a store explains. */
  | 'unexpected';

export interface Answer {
  readonly channelId: string;
  /** Stream revision that the `ETag` names. */
  readonly revision: number;
  readonly body: ChannelResource;
}

/** One request. Times are those of one logical clock: of two events, the later has the greater number. */
export interface Attempt {
  /** `x-request-id`, which the log keeps as `$correlationId`: by it an event is traced to its request. */
  readonly requestId: string;
  readonly sentAt: number;
  settledAt: number;
  outcome: Outcome;
  /** For people: the status and code of the answer, or the error. */
  detail: string;
  answer: Answer | null;
}

/** All requests of one command: the first one, and the retries of the caller. */
export interface Requests {
  /** With a key, all attempts together may happen once; without, each is a command of its own. */
  readonly idempotencyKey: string | null;
  readonly attempts: Attempt[];
}

/** One command of a writer of channels. */
export interface Operation extends Requests {
  readonly change: Change;
}

/** A channel as it was read over REST in the end. */
export interface ReadChannel {
  readonly revision: number;
  readonly body: ChannelResource;
}
