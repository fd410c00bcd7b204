import type { FrameForm } from './channel-frame.ts';
import type { CloseCode } from './protocol.ts';
import type { Grant } from './realtime.ports.ts';

/** More than this unsent: what is not an event is left out, and made good once it was sent. */
export const LOSSY_BYTES = 512 * 1024;
/** More than this unsent: the listener is too slow and has to come back. */
export const SLOW_BYTES = 1024 * 1024;

/** One who listens to a channel: a websocket or an event stream. Its channel keeps its book in it. */
export abstract class ChannelListener {
  abstract readonly form: FrameForm;
  abstract grant: Grant;
  /** What it asked for: a mask of `FRAME_FLAG`. */
  abstract readonly include: number;
  abstract readonly isOpen: boolean;
  /** Bytes that were written and not taken yet. */
  abstract readonly unsent: number;

  /** Sequence of the last event that was written to it; while it is live, its channel's head counts. */
  position = 0;
  /** Its place in the wheel of heartbeats. */
  slot = 0;
  /** By the node's ticks, when its key was last read. */
  verifiedTick = 0;
  /** Whether it lacks something that is not an event, and is written none until that is made good. */
  lacksValues = false;

  /** Bytes of all the current values, written at once: it is not too slow for having them unsent for a while. */
  allowance = 0;

  /** Writes whole frames of its form. */
  abstract write(frames: Buffer): void;
  /** Resolves when nothing is unsent, or it is closed. */
  abstract drained(): Promise<void>;
  /** What was written has been all up to `seq`; what comes is live. */
  abstract caughtUp(seq: number): void;
  abstract close(code: CloseCode, reason: string): void;
  /** Cuts the connection, whatever is unsent. */
  abstract cut(): void;
  /** Resolves when nothing is left of the connection. */
  abstract closed(): Promise<void>;
  /** Asks the other side for a sign of life. */
  abstract beat(): void;
  /** Some time after `beat`. */
  abstract checkBeat(): void;
}
