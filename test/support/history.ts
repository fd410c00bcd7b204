/**
 * Records of the requests that the writers of a test sent, and of the answers: one of the two sides that a checker
 * compares.
 */
import type { ChannelResource } from './channel-fold.ts';

/** The intended effect of a command. Every value is used once, so an event shows which operation made it. */
export type Change =
  | { readonly kind: 'create'; readonly name: string }
  | { readonly kind: 'rename'; readonly channelId: string; readonly name: string }
  | { readonly kind: 'meta'; readonly channelId: string; readonly counter: number }
  | { readonly kind: 'participant'; readonly channelId: string; readonly tag: string };

/** What the caller knows about one request afterwards. */
export type Outcome =
  /** 2xx: the write is done and durable. */
  | 'acknowledged'
  /** An answer, or a refused connection, which means that this request wrote nothing. */
  | 'not_written'
  /** No answer, or one that leaves the outcome open. */
  | 'unknown'
  /** An answer that no failure of a store explains. */
  | 'unexpected';

export interface Answer {
  readonly channelId: string;
  /** Stream revision in the `ETag`. */
  readonly revision: number;
  readonly body: ChannelResource;
}

/** One request. Times are of one logical clock: of two events, the later has the greater number. */
export interface Attempt {
  /** `x-request-id`, which the log keeps as `$correlationId`; it traces an event to its request. */
  readonly requestId: string;
  readonly sentAt: number;
  settledAt: number;
  outcome: Outcome;
  /** For people: status and code of the answer, or the error. */
  detail: string;
  answer: Answer | null;
}

/** All requests of one command: the first one and the caller's retries. */
export interface Requests {
  /** With a key, all attempts together may write once; without, each is a command of its own. */
  readonly idempotencyKey: string | null;
  readonly attempts: Attempt[];
}

/** One command of a writer of channels. */
export interface Operation extends Requests {
  readonly change: Change;
}

/** A channel as REST showed it at the end. */
export interface ReadChannel {
  readonly revision: number;
  readonly body: ChannelResource;
}
