import type { Grant } from './access.ts';
import { type LiveFrame, type FrameFormat, joinedFor } from './live-frame.ts';
import { CLOSE, type CloseCode } from './close-codes.ts';

/** Milliseconds between the pings of the server. */
export const HEARTBEAT_MS = 25_000;
/** Milliseconds in which a client must answer a ping. */
export const PONG_WAIT_MS = 10_000;
/** Milliseconds between the ticks of a node. */
export const TICK_MS = 1_000;
const HEARTBEAT_TICKS = HEARTBEAT_MS / TICK_MS;
const PONG_WAIT_TICKS = PONG_WAIT_MS / TICK_MS;

/** Above this many unsent bytes, values are not sent; the current ones follow once these bytes are sent. */
export const LOSSY_BYTES = 512 * 1024;
/** Above this many unsent bytes, a subscriber is closed as too slow; its client resumes. */
export const SLOW_BYTES = 1024 * 1024;

/** Texts with which subscribers are closed. Clients see them beside the code. */
export interface CloseReasons {
  readonly lost: string;
  readonly ended: string;
  readonly stopping: string;
}

const OF_CHANNELS: CloseReasons = {
  lost: 'Access to the channel was lost',
  ended: 'The channel is archived',
  stopping: 'This process is stopping: connect again and resume',
};

/** A websocket or event stream that receives the frames of one stream, with the delivery state that the stream keeps. */
export abstract class Subscriber {
  abstract readonly format: FrameFormat;
  abstract grant: Grant;
  /** Optional frames to receive: a mask of `FRAME_FLAG`. */
  abstract readonly include: number;
  abstract readonly isOpen: boolean;
  abstract readonly unsentBytes: number;

  /** Sequence of the last event written during the replay; for a live subscriber, the stream's head counts. */
  position = 0;
  /**
   * Random tick of the heartbeat, so that clients that reconnect together after a restart are not all pinged in the same
   * second.
   */
  heartbeatTick = Math.floor(Math.random() * HEARTBEAT_TICKS);
  /** Tick of the node in which its key was last verified. */
  verifiedTick = 0;
  /** It missed values, and receives no newer ones before the current ones. */
  lacksValues = false;
  /** Size of the current values, which are written at once and do not count as slowness. */
  allowanceBytes = 0;

  get reasons(): CloseReasons {
    return OF_CHANNELS;
  }

  /** Subscribers of one group receive the same bytes of each frame. */
  get group(): unknown {
    return `${this.format} ${this.include}`;
  }

  /** The frames in its format, without those that it does not include; null if it receives none of them. */
  encode(frames: readonly LiveFrame[]): Buffer | null {
    return joinedFor(frames, this.format, this.include);
  }

  /** Writes what {@link encode} has returned. */
  abstract write(frames: Buffer): void;
  /** Resolves when all bytes are sent or the subscriber is closed. */
  abstract drained(): Promise<void>;
  /** Called when all events up to `sequence` are written and live frames follow. */
  abstract caughtUp(sequence: number): void;
  abstract close(code: CloseCode, reason: string): void;
  /** Destroys the connection together with its unsent bytes. */
  abstract destroy(): void;
  abstract closed(): Promise<void>;
  abstract ping(): void;
  /** Called some time after `ping`. */
  abstract checkPong(): void;

  /** Called instead of `write` for a live subscriber with too many unsent bytes. @param _after the last sequence written */
  onSlow(_after: number): void {
    this.close(CLOSE.slow, 'Too slow: connect again and resume');
  }

  onTick(now: number): void {
    const sincePing = (now + HEARTBEAT_TICKS - this.heartbeatTick) % HEARTBEAT_TICKS;
    if (sincePing === 0) this.ping();
    else if (sincePing === PONG_WAIT_TICKS) this.checkPong();
  }
}
