import type { ServerResponse } from 'node:http';

import { EventStream, type Grant, type LiveChannel, type RealtimeNode } from '#libs/features/realtime/index.ts';
import { FRAME_FLAG } from '#libs/platform/live/index.ts';
import { STREAM_CLOSE } from '#libs/platform/http/index.ts';

import type { TurnFrames } from './turn-frames.ts';

const EVERYTHING = FRAME_FLAG.nested | FRAME_FLAG.incomplete | FRAME_FLAG.ephemeral;

/** The event stream of a channel for one turn: its frames alone, with an event before and one after them. */
export class TurnStream extends EventStream {
  readonly #frames: TurnFrames;
  readonly #live = Promise.withResolvers<void>();

  constructor(
    node: RealtimeNode,
    of: { readonly grant: Grant; readonly channel: LiveChannel; readonly frames: TurnFrames },
    response: ServerResponse,
  ) {
    super(node, { grant: of.grant, channel: of.channel, include: EVERYTHING }, response);
    this.#frames = of.frames;
  }

  /** Resolves when the events that were missed are written. */
  get live(): Promise<void> {
    return this.#live.promise;
  }

  override write(frames: Buffer): void {
    const selected = this.#frames.select(frames);
    if (selected !== null) super.write(selected);
  }

  override caughtUp(): void {
    this.#live.resolve();
  }

  /** An event of another type than frames. @param id a cursor */
  writeEvent(type: string, data: object, id?: string): void {
    const head = id === undefined ? '' : `id: ${id}\n`;
    super.write(Buffer.from(`${head}event: ${type}\ndata: ${JSON.stringify(data)}\n\n`));
  }

  /** An archived channel has no more events, but its prompt still gets its `answer`. */
  override close(code: Parameters<EventStream['close']>[0], reason: string): void {
    if (code !== STREAM_CLOSE.ended) super.close(code, reason);
  }

  end(): void {
    super.close(STREAM_CLOSE.ended, 'The run has ended');
  }
}
