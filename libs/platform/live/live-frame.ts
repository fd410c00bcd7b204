import type { ChannelSequence } from '#libs/kernel/event.ts';
import { FRAME_FLAG, frameType, withoutData } from './frames.ts';
import { payloadOf, textFrame } from '#libs/platform/websocket/index.ts';

/** The lines of a typed event stream name the type of each event. */
export type FrameFormat = 'websocket' | 'event-stream' | 'typed-event-stream';

const END = Buffer.from('\n\n');
/** See {@link inOneLine}. */
const LINE_ENDS = ['\u0085', '\u2028', '\u2029'].map((end) => Buffer.from(end));

/** Frames with one of these flags are sent only to subscribers that include them; see `resume.include`. */
const OPTIONAL = FRAME_FLAG.nested | FRAME_FLAG.incomplete | FRAME_FLAG.ephemeral;

/** A frame of a stream, encoded once for all subscribers. Copies the JSON. */
export class LiveFrame {
  /** Null for a value, which is not part of the sequence. */
  readonly sequence: ChannelSequence | null;
  readonly flags: number;
  readonly #whole: Buffer;
  #withoutData: Buffer | undefined;

  constructor(sequence: ChannelSequence | null, flags: number, json: Buffer | string) {
    this.sequence = sequence;
    this.flags = flags;
    this.#whole = textFrame(json);
  }

  get bytes(): number {
    return this.#whole.length;
  }

  get json(): string {
    return payloadOf(this.#whole).toString();
  }

  has(flag: number): boolean {
    return (this.flags & flag) !== 0;
  }

  /**
   * The frame for subscribers with the mask `include` of `FRAME_FLAG`. If the mask lacks one of its flags, an event has
   * `"data":null`, which keeps sequences contiguous, and a value is null.
   */
  encodedFor(format: FrameFormat, include: number): Buffer | null {
    const hidden = (this.flags & OPTIONAL & ~include) !== 0;
    if (hidden && this.sequence === null) return null;
    const frame = hidden ? this.#bare() : this.#whole;
    if (format === 'websocket') return frame;
    const id = this.sequence === null ? '' : `id: ${this.sequence}\n`;
    const type = format === 'typed-event-stream' ? `event: ${frameType(this.json)}\n` : '';
    const payload = payloadOf(frame);
    const isLine = !LINE_ENDS.some((end) => payload.includes(end));
    // One `data` line. A value has no id: the browser keeps that of the last event.
    return Buffer.concat([
      Buffer.from(`${id}${type}data: `),
      isLine ? payload : Buffer.from(inOneLine(payload.toString())),
      END,
    ]);
  }

  #bare(): Buffer {
    return (this.#withoutData ??= textFrame(withoutData(this.json)));
  }
}

/**
 * JSON as one line of an event stream: many readers end lines at these characters too, as `str.splitlines` of Python does. In
 * JSON they are unescaped in strings only.
 */
export function inOneLine(json: string): string {
  return json.replaceAll(/[\u0085\u2028\u2029]/g, (end) => `\\u${end.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Frames from the log. */
export function liveFrames(
  page: readonly { readonly sequence: ChannelSequence; readonly flags: number; readonly json: string }[],
): LiveFrame[] {
  return page.map(({ sequence, flags, json }) => new LiveFrame(sequence, flags, json));
}

/** The frames of a subscriber, joined; null if it receives none of them. */
export function joinedFor(frames: readonly LiveFrame[], format: FrameFormat, include: number): Buffer | null {
  const parts: Buffer[] = [];
  for (const frame of frames) {
    const bytes = frame.encodedFor(format, include);
    if (bytes !== null) parts.push(bytes);
  }
  const [only] = parts;
  if (only === undefined) return null;
  return parts.length === 1 ? only : Buffer.concat(parts);
}
