import type { ChannelSequence } from '#libs/kernel/event.ts';
import { FRAME_FLAG, withoutData } from '#libs/platform/live/index.ts';
import type { LiveItem } from '#libs/platform/live/index.ts';
import { payloadOf, textFrame } from '#libs/platform/websocket/index.ts';

/** How frames are written to a listener: as websocket frames, or as server-sent events. */
export type FrameForm = 'websocket' | 'event-stream';

/** What a socket may ask for besides; see `resume.include`. */
const ASKED_FOR = FRAME_FLAG.nested | FRAME_FLAG.incomplete | FRAME_FLAG.ephemeral;
const ARCHIVED = /^\{"frame":"event","seq":\d+,"type":"channel\.archived"/;

/**
 * One frame of a channel, made into bytes once, however many listeners there are. Its memory is its own: what
 * a topic's message lent is copied.
 */
export class ChannelFrame {
  /** Null for what is not an event. */
  readonly sequence: ChannelSequence | null;
  readonly flags: number;
  /** As a websocket frame: whole, and for who has not asked for its data. */
  readonly #whole: Buffer;
  #bare: Buffer | undefined;

  constructor(sequence: ChannelSequence | null, flags: number, json: Buffer | string) {
    this.sequence = sequence;
    this.flags = flags;
    this.#whole = textFrame(json);
  }

  get size(): number {
    return this.#whole.length;
  }

  /** Whether it tells that the channel goes on no more. */
  get archives(): boolean {
    return (this.flags & FRAME_FLAG.access) !== 0 && ARCHIVED.test(payloadOf(this.#whole).toString('latin1', 0, 128));
  }

  /** Whether it tells of who may listen. */
  get changesAccess(): boolean {
    return (this.flags & FRAME_FLAG.access) !== 0;
  }

  /**
   * The bytes for a listener that asked for `include` (a mask of `FRAME_FLAG`). An event has a frame for
   * everybody, if need be without its data: sequences stay contiguous. Of the rest, null if it isn't for them.
   */
  bytesFor(form: FrameForm, include: number): Buffer | null {
    const hidden = (this.flags & ASKED_FOR & ~include) !== 0;
    if (hidden && this.sequence === null) return null;
    const frame = hidden ? this.#withoutData() : this.#whole;
    return form === 'websocket' ? frame : serverSentEvent(this.sequence, payloadOf(frame));
  }

  #withoutData(): Buffer {
    return (this.#bare ??= textFrame(withoutData(payloadOf(this.#whole).toString())));
  }
}

export function frameOf(item: Exclude<LiveItem, { kind: 'head' }>): ChannelFrame {
  return new ChannelFrame(item.kind === 'event' ? item.sequence : null, item.flags, item.json);
}

const DATA = Buffer.from('data: ');
const END = Buffer.from('\n\n');

/** Frames are JSON on one line, so `data` is one line too. What is not an event leaves the browser's last id alone. */
function serverSentEvent(sequence: ChannelSequence | null, payload: Buffer): Buffer {
  const id = sequence === null ? [] : [Buffer.from(`id: ${sequence}\n`)];
  return Buffer.concat([...id, DATA, payload, END]);
}

/** The frames for one listener, joined; null if none is for them. */
export function joinedFor(frames: readonly ChannelFrame[], form: FrameForm, include: number): Buffer | null {
  const parts: Buffer[] = [];
  for (const frame of frames) {
    const bytes = frame.bytesFor(form, include);
    if (bytes !== null) parts.push(bytes);
  }
  const [only] = parts;
  if (only === undefined) return null;
  return parts.length === 1 ? only : Buffer.concat(parts);
}
