import { z } from 'zod';

import type { EntityId } from '#libs/kernel/ids.ts';

/** The members of frames by which they belong to a turn. `data.id` is that of an interaction. */
const frame = z.looseObject({
  frame: z.string(),
  interaction_id: z.string().optional(),
  data: z.looseObject({ id: z.string().optional(), interaction_id: z.string().nullish() }).nullish(),
});

const END = '\n\n';

/** An event of the channel, and what says which turn it belongs to. */
interface ChannelEvent {
  readonly text: string;
  readonly isComment: boolean;
  /** The interaction whose text this is, for drafts. */
  readonly draftOf: string | undefined;
  readonly turnId: string | null;
  readonly id: string | undefined;
}

/**
 * Events of the frames that a channel has published. All streams of a channel are written the same buffer: parsed for each
 * of them, the frames of many prompts at once would cost the square of their number.
 */
const parsed = new WeakMap<Buffer, readonly ChannelEvent[]>();
const ID = /^id: (\d+)\n/;

/**
 * Selects the frames of one turn from those of its channel, in the form of server-sent events. Their ids become cursors,
 * which name the prompt as well: a client that sends one back resumes the same turn.
 */
export class TurnFrames {
  readonly #turnId: string;
  readonly #cursorAt: (sequence: number) => string;
  /** Ids of the interactions of the turn. Texts of answers name only them. */
  readonly #interactions: Set<EntityId>;

  /** @param known the interactions of the turn before the first frame */
  constructor(turnId: string, known: readonly EntityId[], cursorAt: (sequence: number) => string) {
    this.#turnId = turnId;
    this.#cursorAt = cursorAt;
    this.#interactions = new Set(known);
  }

  /** @param frames whole events and comments @returns those of the turn, and all comments; null for none */
  select(frames: Buffer): Buffer | null {
    const selected = eventsOf(frames).filter((event) => event.isComment || this.#isOfTurn(event));
    if (selected.length === 0) return null;
    return Buffer.from(selected.map(({ text }) => this.#withCursor(text) + END).join(''));
  }

  #isOfTurn({ draftOf, turnId, id }: ChannelEvent): boolean {
    if (draftOf !== undefined) return this.#interactions.has(draftOf);
    if (turnId !== this.#turnId) return false;
    if (id !== undefined) this.#interactions.add(id);
    return true;
  }

  #withCursor(event: string): string {
    return event.replace(ID, (_all, sequence: string) => `id: ${this.#cursorAt(Number(sequence))}\n`);
  }
}

function eventsOf(frames: Buffer): readonly ChannelEvent[] {
  const known = parsed.get(frames);
  if (known !== undefined) return known;
  const events = frames.toString().split(END).slice(0, -1).map(channelEventOf);
  parsed.set(frames, events);
  return events;
}

function channelEventOf(text: string): ChannelEvent {
  if (text.startsWith(':')) return { text, isComment: true, draftOf: undefined, turnId: null, id: undefined };
  const json = text.slice(text.indexOf('data: ') + 'data: '.length);
  const { interaction_id: draftOf, data } = frame.parse(JSON.parse(json));
  return { text, isComment: false, draftOf, turnId: data?.interaction_id ?? null, id: data?.id };
}
