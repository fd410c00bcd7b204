import { z } from 'zod';

import type { EntityId } from '#libs/kernel/ids.ts';

/** The members of frames by which they belong to a turn. `data.id` is that of an interaction. */
const frame = z.looseObject({
  frame: z.string(),
  interaction_id: z.string().optional(),
  data: z.looseObject({ id: z.string().optional(), interaction_id: z.string().nullish() }).nullish(),
});

const END = '\n\n';
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
    const events = frames.toString().split(END).slice(0, -1);
    const selected = events.filter((event) => event.startsWith(':') || this.#isOfTurn(event));
    if (selected.length === 0) return null;
    return Buffer.from(selected.map((event) => this.#withCursor(event) + END).join(''));
  }

  #isOfTurn(event: string): boolean {
    const json = event.slice(event.indexOf('data: ') + 'data: '.length);
    const { interaction_id: draftOf, data } = frame.parse(JSON.parse(json));
    if (draftOf !== undefined) return this.#interactions.has(draftOf);
    if (data?.interaction_id !== this.#turnId) return false;
    if (data.id !== undefined) this.#interactions.add(data.id);
    return true;
  }

  #withCursor(event: string): string {
    return event.replace(ID, (_all, sequence: string) => `id: ${this.#cursorAt(Number(sequence))}\n`);
  }
}
