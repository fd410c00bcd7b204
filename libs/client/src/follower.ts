/*
 * The state of a subscription, without sockets and clocks: it turns frames into steps. It outlives connections: each
 * event of the channel results in one step, in order.
 */
import { CLOSE } from './close-codes.ts';
import { sentenceOf } from './errors.ts';
import { asEvent, type ChannelEvent } from './events.ts';
import {
  type AckFrame,
  type ClientFrame,
  type DeltaFrame,
  type EphemeralFrame,
  type ErrorFrame,
  type EventFrame,
  type HelloFrame,
  type Include,
  PROTOCOL,
  type ServerFrame,
  type SnapshotFrame,
} from './frames.ts';

/** The text so far of an interaction that is being written. */
export interface Draft {
  readonly interactionId: string;
  /** The whole text so far. */
  readonly text: string;
  /** What the last frame appended; null if it replaced the whole text. */
  readonly added: string | null;
}

/** A value that is not stored, such as a typing indicator. */
export interface Ephemeral {
  /** A newer value replaces an older one with the same key. */
  readonly key: string;
  readonly data: unknown;
  /** Milliseconds after which the value expires. */
  readonly ttlMs: number;
}

export type Step =
  | { readonly do: 'send'; readonly frame: ClientFrame }
  | { readonly do: 'event'; readonly event: ChannelEvent }
  | { readonly do: 'draft'; readonly draft: Draft }
  | { readonly do: 'ephemeral'; readonly ephemeral: Ephemeral }
  | { readonly do: 'caught up'; readonly seq: number }
  /** Commands can be sent from now on. */
  | { readonly do: 'greeted'; readonly hello: HelloFrame }
  | { readonly do: 'settle'; readonly answer: AckFrame | ErrorFrame }
  /** The server reports an error before it closes. */
  | { readonly do: 'note'; readonly complaint: string }
  /** End the connection with this code, and reconnect. */
  | { readonly do: 'leave'; readonly code: number; readonly reason: string };

export interface FollowerOptions {
  /** Sequence of the last event seen; undefined for new events only. */
  readonly after: number | undefined;
  readonly include: readonly Include[];
}

const NOTHING: readonly Step[] = [];

export class Follower {
  readonly #include: readonly Include[];
  readonly #drafts = new Drafts();
  readonly #ephemerals = new Ephemerals();
  #received: number | null;
  #greeted = false;
  #isAside = false;

  constructor({ after, include }: FollowerOptions) {
    this.#received = after ?? null;
    this.#include = include;
  }

  /** Sequence of the last received event; null before the first connection of a subscription to new events only. */
  get received(): number | null {
    return this.#received;
  }
  get drafts(): ReadonlyMap<string, string> {
    return this.#drafts.texts;
  }

  /**
   * On a new connection, whose first frame must be `hello`.
   *
   * @param isAside it is for commands and values alone: its events are not delivered, and a later connection resumes as
   *   if there had been none
   */
  connected({ isAside = false } = {}): void {
    this.#greeted = false;
    this.#isAside = isAside;
  }

  receive(frame: ServerFrame, nowMs: number): readonly Step[] {
    if (!this.#greeted && frame.frame !== 'hello') return [leave(`${frame.frame} came before hello`)];
    switch (frame.frame) {
      case 'hello':
        return this.#hello(frame);
      case 'event':
        return this.#event(frame);
      case 'caught_up':
        if (this.#isAside) return NOTHING;
        return frame.seq === this.#received
          ? [{ do: 'caught up', seq: frame.seq }]
          : [leave(`caught up at ${frame.seq}, with ${this.#received} received`)];
      case 'delta':
        return drafted(this.#drafts.append(frame));
      case 'snapshot':
        return drafted(this.#drafts.replace(frame));
      case 'ephemeral': {
        const ephemeral = this.#ephemerals.take(frame, nowMs);
        return ephemeral === null ? NOTHING : [{ do: 'ephemeral', ephemeral }];
      }
      case 'ack':
        return [{ do: 'settle', answer: frame }];
      case 'error':
        return frame.id === undefined
          ? [{ do: 'note', complaint: `${frame.code}: ${sentenceOf(frame.detail)}` }]
          : [{ do: 'settle', answer: frame }];
      case 'ping':
        return [{ do: 'send', frame: { frame: 'pong' } }];
      default:
        // `pong`, and frames of later versions.
        return NOTHING;
    }
  }

  #hello(hello: HelloFrame): readonly Step[] {
    if (hello.protocol !== PROTOCOL) return [leave(`the server speaks ${String(hello.protocol)}`)];
    this.#greeted = true;
    this.#ephemerals.clear();
    // Resumes after the first `hello`, even if the connection breaks before the first event.
    this.#received ??= hello.head;
    const after = this.#isAside ? hello.head : this.#received;
    return [
      { do: 'send', frame: { frame: 'resume', after, include: [...this.#include] } },
      { do: 'greeted', hello },
    ];
  }

  #event(frame: EventFrame): readonly Step[] {
    if (this.#isAside) return NOTHING;
    const received = this.#received ?? 0;
    if (frame.seq <= received) return NOTHING;
    if (frame.seq !== received + 1) return [leave(`event ${frame.seq} came after ${received}`)];
    this.#received = frame.seq;
    const event = asEvent(frame);
    switch (event.type) {
      case 'interaction.completed':
      case 'interaction.failed':
      // It may have completed in an event whose data are gone.
      case 'interaction.deleted':
        if (event.data !== null) this.#drafts.end(event.data.id);
        break;
      default:
    }
    return [{ do: 'event', event }];
  }
}

function drafted(draft: Draft | null): readonly Step[] {
  return draft === null ? NOTHING : [{ do: 'draft', draft }];
}

function leave(reason: string): Step {
  return { do: 'leave', code: CLOSE.outOfStep, reason };
}

/**
 * Texts of answers that are being written. A delta applies only at its offset. After a lost delta the text is unknown
 * until the server sends it whole; until then nothing is shown.
 */
class Drafts {
  readonly #texts = new Map<string, string>();

  get texts(): ReadonlyMap<string, string> {
    return this.#texts;
  }

  /** @returns null if the text before the delta is not known, or already has it */
  append({ interaction_id: interactionId, offset, text: added }: DeltaFrame): Draft | null {
    const held = offset === 0 ? '' : this.#texts.get(interactionId);
    // Offset 0 starts a new attempt and replaces the known text.
    if (held === undefined || held.length !== offset) {
      // Or it comes twice: a snapshot may have what was written while it was read, which then follows as deltas.
      if (held?.startsWith(added, offset) !== true) this.#texts.delete(interactionId);
      return null;
    }
    const text = held + added;
    this.#texts.set(interactionId, text);
    return { interactionId, text, added };
  }

  replace({ interaction_id: interactionId, text }: SnapshotFrame): Draft {
    this.#texts.set(interactionId, text);
    return { interactionId, text, added: null };
  }

  /** The interaction has completed or failed: its event has the final text. */
  end(interactionId: string): void {
    this.#texts.delete(interactionId);
  }
}

/** Bounds the memory of a busy channel. */
const MAX_KEYS = 1_000;

/** Drops values that are older than the newest one of their key. Versions count until the value expires, and within one connection. */
class Ephemerals {
  readonly #newest = new Map<string, { readonly n: number; readonly until: number }>();

  /** @returns null if a newer value has been received */
  take({ key, n, data, ttl_ms: ttlMs }: EphemeralFrame, nowMs: number): Ephemeral | null {
    const held = this.#newest.get(key);
    if (held !== undefined && held.until > nowMs && n <= held.n) return null;
    // Moves the key to the end, so that the first key of the map is the oldest one.
    this.#newest.delete(key);
    this.#newest.set(key, { n, until: nowMs + ttlMs });
    const [oldest = key] = this.#newest.keys();
    if (this.#newest.size > MAX_KEYS) this.#newest.delete(oldest);
    return { key, data, ttlMs };
  }

  /** The server of a new connection may count from the start. */
  clear(): void {
    this.#newest.clear();
  }
}
