/**
 * Checks that sockets received exactly the log's suffix after their first cursors: no gap, duplicate, reordering or
 * frame of another channel, and the same bytes as in the log.
 */
import { asRecord } from '#test/support/log-reader.ts';

/** The frames of one channel as they follow from the log; index 0 is the frame of sequence 1. */
export type FrameLog = readonly string[];

/** The sessions of one subscriber. */
export interface Received {
  readonly name: string;
  readonly channelId: string;
  /** `after` of its first resume; undefined: only new events. */
  readonly after: number | undefined;
  readonly sessions: readonly ReceivedSession[];
}

export interface ReceivedSession {
  /** `after` of its resume. */
  readonly after: number | undefined;
  readonly hello: Readonly<Record<string, unknown>> | undefined;
  readonly frames: readonly string[];
}

export interface Expected {
  /** The log of each channel, as a socket with these includes must receive it. */
  readonly logs: ReadonlyMap<string, FrameLog>;
  /** Whether every socket must have reached the end of its log. Default: true. */
  readonly complete?: boolean;
}

/** One line per problem: `kind: socket: description`. */
export function problemsOf(received: readonly Received[], { logs, complete = true }: Expected): string[] {
  const channelOf = new Map<string, string>();
  for (const [channelId, log] of logs) for (const text of log) channelOf.set(text, channelId);
  return received.flatMap((socket) => {
    const log = logs.get(socket.channelId);
    if (log === undefined) return [`unknown: ${socket.name}: there is no log of ${socket.channelId}`];
    return new SocketCheck(socket, log, channelOf).problems(complete);
  });
}

class SocketCheck {
  readonly #socket: Received;
  readonly #log: FrameLog;
  readonly #channelOf: ReadonlyMap<string, string>;
  readonly #problems: string[] = [];
  /** Sequences that were skipped: a gap, or a reordering if they arrive later. */
  readonly #skipped = new Set<number>();
  readonly #seen = new Set<number>();
  /** The sequence that must come next; undefined until the first session has one. */
  #next: number | undefined;

  constructor(socket: Received, log: FrameLog, channelOf: ReadonlyMap<string, string>) {
    this.#socket = socket;
    this.#log = log;
    this.#channelOf = channelOf;
    this.#next = socket.after === undefined ? undefined : socket.after + 1;
  }

  problems(complete: boolean): string[] {
    for (const session of this.#socket.sessions) this.#session(session);
    for (const sequence of this.#skipped) this.#report('gap', `${sequence} is missing`);
    const last = (this.#next ?? 1) - 1;
    if (complete && this.#next === undefined) this.#report('unfinished', 'it received neither an event nor caught_up');
    else if (complete && last < this.#log.length) {
      this.#report('unfinished', `it reached ${last} of ${this.#log.length}`);
    }
    return this.#problems;
  }

  #session({ after, hello, frames }: ReceivedSession): void {
    const reached = this.#next === undefined ? undefined : this.#next - 1;
    if (after !== reached) this.#report('resumed', `it resumed at ${after} after it had reached ${reached}`);
    if (hello === undefined) this.#report('greeting', `the first frame was ${frames[0] ?? 'none'}`);
    else if (hello['channel_id'] !== this.#socket.channelId) {
      this.#report('foreign', `hello names ${String(hello['channel_id'])}`);
    }
    let caughtUp = false;
    for (const text of frames) {
      const frame = asRecord(JSON.parse(text));
      if (frame['frame'] === 'event') {
        if (after === undefined && !caughtUp)
          this.#report('foreign', `an event before caught_up, without a resume position: ${text}`);
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
      this.#report('caught_up', `caught_up at ${sequence} after event ${this.#next - 1}`);
    }
    if (sequence < head) this.#report('caught_up', `caught_up at ${sequence}, but the head in hello was ${head}`);
  }

  #event(sequence: number, text: string): void {
    const expected = this.#log[sequence - 1];
    if (text !== expected) {
      const owner = this.#channelOf.get(text);
      if (owner !== undefined && owner !== this.#socket.channelId) {
        this.#report('foreign', `a frame of ${owner}: ${text}`);
        return;
      }
      if (expected === undefined) {
        this.#report('foreign', `the log has no ${sequence}: ${text}`);
        return;
      }
      this.#report('altered', `${sequence} differs from the log: ${text} instead of ${expected}`);
    }
    this.#follow(sequence);
  }

  #follow(sequence: number): void {
    const next = (this.#next ??= sequence);
    if (this.#seen.has(sequence)) this.#report('double', `${sequence} is repeated`);
    else if (this.#skipped.delete(sequence)) this.#report('reorder', `${sequence} came after ${next - 1}`);
    else if (sequence < next) this.#report('double', `${sequence} arrived, expected ${next} or later`);
    this.#seen.add(sequence);
    for (let skipped = next; skipped < sequence; skipped++) this.#skipped.add(skipped);
    this.#next = Math.max(next, sequence + 1);
  }

  #report(kind: string, description: string): void {
    this.#problems.push(`${kind}: ${this.#socket.name}: ${description}`);
  }
}
