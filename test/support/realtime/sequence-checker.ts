/**
 * Whether what sockets received is exactly what the log says, from the point where each began: nothing missing,
 * nothing twice, nothing out of order, nothing of another channel, and every byte as it is in the log.
 */
import { asRecord } from '#test/support/log-reader.ts';

/** The frames of one channel as they follow from the log; index 0 is the frame of sequence 1. */
export type FrameLog = readonly string[];

/** What one subscriber received, over all its connections. */
export interface Received {
  readonly name: string;
  readonly channelId: string;
  /** What it asked for when it first resumed; undefined: only what was new. */
  readonly after: number | undefined;
  readonly sessions: readonly ReceivedSession[];
}

export interface ReceivedSession {
  /** What it resumed at. */
  readonly after: number | undefined;
  readonly hello: Readonly<Record<string, unknown>> | undefined;
  readonly frames: readonly string[];
}

export interface Expected {
  /** The log of each channel, as a socket with these includes is to see it. */
  readonly logs: ReadonlyMap<string, FrameLog>;
  /** Whether every socket must have come to the end of its log. Default: true. */
  readonly complete?: boolean;
}

/** One line per problem, `kind: socket: what`; empty if all is well. */
export function problemsOf(received: readonly Received[], { logs, complete = true }: Expected): string[] {
  const homes = new Map<string, string>();
  for (const [channelId, log] of logs) for (const text of log) homes.set(text, channelId);
  return received.flatMap((socket) => {
    const log = logs.get(socket.channelId);
    if (log === undefined) return [`unknown: ${socket.name}: there is no log of ${socket.channelId}`];
    return new SocketCheck(socket, log, homes).problems(complete);
  });
}

class SocketCheck {
  readonly #socket: Received;
  readonly #log: FrameLog;
  readonly #homes: ReadonlyMap<string, string>;
  readonly #problems: string[] = [];
  /** Sequences passed over; each must come yet, and then came too late. */
  readonly #skipped = new Set<number>();
  readonly #seen = new Set<number>();
  /** The sequence that must come next; undefined until the first session says where it began. */
  #next: number | undefined;

  constructor(socket: Received, log: FrameLog, homes: ReadonlyMap<string, string>) {
    this.#socket = socket;
    this.#log = log;
    this.#homes = homes;
    this.#next = socket.after === undefined ? undefined : socket.after + 1;
  }

  problems(complete: boolean): string[] {
    for (const session of this.#socket.sessions) this.#session(session);
    for (const sequence of this.#skipped) this.#report('gap', `${sequence} never came`);
    const last = (this.#next ?? 1) - 1;
    if (complete && this.#next === undefined) this.#report('unfinished', 'it was never told where it began');
    else if (complete && last < this.#log.length) {
      this.#report('unfinished', `it came to ${last} of ${this.#log.length}`);
    }
    return this.#problems;
  }

  #session({ after, hello, frames }: ReceivedSession): void {
    const where = this.#next === undefined ? undefined : this.#next - 1;
    if (after !== where) this.#report('resumed', `it resumed at ${after} where it had come to ${where}`);
    if (hello === undefined) this.#report('greeting', `the first frame was ${frames[0] ?? 'none'}`);
    else if (hello['channel_id'] !== this.#socket.channelId) {
      this.#report('foreign', `hello names ${String(hello['channel_id'])}`);
    }
    let caughtUp = false;
    for (const text of frames) {
      const frame = asRecord(JSON.parse(text));
      if (frame['frame'] === 'event') {
        if (after === undefined && !caughtUp) this.#report('foreign', `an event before it had a beginning: ${text}`);
        this.#event(Number(frame['seq']), text);
      } else if (frame['frame'] === 'caught_up') {
        if (caughtUp) this.#report('double', 'caught_up came twice');
        this.#caughtUp(Number(frame['seq']), Number(hello?.['head'] ?? 0));
        caughtUp = true;
      }
    }
  }

  #caughtUp(sequence: number, head: number): void {
    this.#next ??= sequence + 1;
    if (sequence !== this.#next - 1) {
      this.#report('caught_up', `${sequence} was told, ${this.#next - 1} was the last to come`);
    }
    if (sequence < head) this.#report('caught_up', `at ${sequence}, though hello had said ${head}`);
  }

  #event(sequence: number, text: string): void {
    const expected = this.#log[sequence - 1];
    if (text !== expected) {
      const home = this.#homes.get(text);
      if (home !== undefined && home !== this.#socket.channelId) {
        this.#report('foreign', `a frame of ${home}: ${text}`);
        return;
      }
      if (expected === undefined) {
        this.#report('foreign', `the log has no ${sequence}: ${text}`);
        return;
      }
      this.#report('altered', `${sequence} is not as in the log: ${text} instead of ${expected}`);
    }
    this.#place(sequence);
  }

  #place(sequence: number): void {
    const next = (this.#next ??= sequence);
    if (this.#seen.has(sequence)) this.#report('double', `${sequence} came again`);
    else if (this.#skipped.delete(sequence)) this.#report('reorder', `${sequence} came after ${next - 1}`);
    else if (sequence < next) this.#report('double', `${sequence} came, though it was to begin at ${next}`);
    this.#seen.add(sequence);
    for (let skipped = next; skipped < sequence; skipped++) this.#skipped.add(skipped);
    this.#next = Math.max(next, sequence + 1);
  }

  #report(kind: string, what: string): void {
    this.#problems.push(`${kind}: ${this.#socket.name}: ${what}`);
  }
}
