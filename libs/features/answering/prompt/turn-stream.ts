import type { ServerResponse } from 'node:http';

import { z } from 'zod';

import type { EntityId } from '#libs/kernel/ids.ts';
import {
  CLOSE,
  type CloseCode,
  EventStream,
  FRAME_FLAG,
  type Grant,
  inOneLine,
  type LiveFrame,
  type LiveNode,
  type LiveStream,
} from '#libs/platform/live/index.ts';

const EVERYTHING = FRAME_FLAG.nested | FRAME_FLAG.incomplete | FRAME_FLAG.ephemeral;

/** The members of frames by which they belong to a turn. `data.id`: of an interaction. */
const frameSchema = z.looseObject({
  interaction_id: z.string().optional(),
  data: z.looseObject({ id: z.string().optional(), interaction_id: z.string().nullish() }).nullish(),
});
type Members = z.infer<typeof frameSchema>;

/** All streams of a channel receive the same frames: read by each of them, they would cost the square of their number. */
const read = new WeakMap<LiveFrame, Members>();

function membersOf(frame: LiveFrame): Members {
  const members = read.get(frame) ?? frameSchema.parse(JSON.parse(frame.json));
  read.set(frame, members);
  return members;
}

/** The turn that a stream follows. */
interface FollowedTurn {
  readonly turnId: string;
  /** The interactions of the turn before the first frame. */
  readonly known: readonly EntityId[];
  /** The id of an event: a cursor, which names the prompt as well, so that a client that sends it back resumes the turn. */
  cursorAt(sequence: number): string;
}

/** The event stream of a channel for one turn: its frames alone, with an event before and one after them. */
export class TurnStream extends EventStream {
  readonly #turn: FollowedTurn;
  /** Ids of the interactions of the turn. Texts of answers name only them. */
  readonly #interactions: Set<EntityId>;
  readonly #live = Promise.withResolvers<void>();

  constructor(
    node: LiveNode,
    of: { readonly grant: Grant; readonly stream: LiveStream; readonly turn: FollowedTurn },
    response: ServerResponse,
  ) {
    super(node, { grant: of.grant, stream: of.stream, include: EVERYTHING }, response);
    this.#turn = of.turn;
    this.#interactions = new Set(of.turn.known);
  }

  /** Resolves when the events that were missed are written. */
  get live(): Promise<void> {
    return this.#live.promise;
  }

  /** No other stream has the same cursors. */
  override get group(): unknown {
    return this;
  }

  override encode(frames: readonly LiveFrame[]): Buffer | null {
    const own = frames.filter((frame) => this.#isOfTurn(membersOf(frame)));
    if (own.length === 0) return null;
    return Buffer.from(
      own.map(({ sequence, json }) => eventOf(json, sequence === null ? null : this.#turn.cursorAt(sequence))).join(''),
    );
  }

  #isOfTurn({ interaction_id: draftOf, data }: Members): boolean {
    if (draftOf !== undefined) return this.#interactions.has(draftOf);
    if (data?.interaction_id !== this.#turn.turnId) return false;
    if (data.id !== undefined) this.#interactions.add(data.id);
    return true;
  }

  override caughtUp(): void {
    this.#live.resolve();
  }

  /** An event of another type than frames. @param id a cursor */
  writeEvent(type: string, data: object, id: string | null = null): void {
    this.write(Buffer.from(eventOf(JSON.stringify(data), id, `event: ${type}\n`)));
  }

  /** An archived channel has no more events, but its prompt still gets its `answer`. */
  override close(code: CloseCode, reason: string): void {
    if (code !== CLOSE.ended) super.close(code, reason);
  }

  end(): void {
    super.close(CLOSE.ended, 'The run has ended');
  }
}

function eventOf(json: string, id: string | null, type = ''): string {
  return `${id === null ? '' : `id: ${id}\n`}${type}data: ${inOneLine(json)}\n\n`;
}
