import { setImmediate as immediate } from 'node:timers/promises';

import { storeUnavailable } from '#libs/kernel/faults.ts';
import { FairSemaphore } from '#libs/platform/lifecycle/index.ts';

import type { FrameSource, LiveSource } from './frame-source.ts';
import { LiveStream, type LiveStreamParts, type StreamRef } from './live-stream.ts';
import { ReplayMemory } from './replay.ts';

/**
 * Sequences that the read models of streams have reached, in order of the streams; at most those of the log. Throws
 * `store_unavailable` faults.
 */
export type PublishedHeads = (
  streams: readonly (StreamRef & { readonly log: Pick<FrameSource, 'category'> })[],
) => Promise<readonly number[]>;

export interface LiveLog {
  warn(fields: object, message: string): void;
}

export interface LiveStreamsOptions extends Pick<LiveStreamParts, 'frames' | 'metrics' | 'onAccessChange'> {
  readonly heads: PublishedHeads;
}

interface Known {
  readonly stream: LiveStream;
  readonly opening: Promise<boolean>;
  idleTicks: number;
}

/**
 * Concurrent reads of pages of the log, by all replays of the process. Decoding a page's events takes most of the time,
 * on the thread that commands need as well: more reads at once are no faster, and delay commands for longer.
 */
const MAX_PAGE_READS = 2;
/** How long a stream without subscribers stays open for clients that reconnect at once; in ticks, of a second. */
const MAX_IDLE_TICKS = 5;
const SWEEP_TICKS = 15;
const HEADS_PER_QUERY = 500;

/** The streams that have subscribers in this process: it subscribes to each topic once, for all of them. */
export class LiveStreams {
  readonly #known = new Map<string, Known>();
  readonly #parts: LiveStreamParts;
  readonly #heads: PublishedHeads;
  #ticks = 0;
  #isSweepDue = false;
  #isSweeping = false;
  #isClosed = false;

  constructor(
    { topics, log: logger }: Pick<LiveStreamParts, 'topics'> & { readonly log: LiveLog },
    { heads, ...parts }: LiveStreamsOptions,
  ) {
    this.#heads = heads;
    this.#parts = {
      ...parts,
      topics,
      pageReads: new FairSemaphore({ permits: MAX_PAGE_READS }),
      memory: new ReplayMemory(),
      warn: (error, message) => logger.warn({ err: error }, `realtime: ${message}`),
      onResubscribed: () => this.#sweepSoon(),
    };
  }

  get size(): number {
    return this.#known.size;
  }

  /** The stream if it is open already. */
  openOne({ log }: LiveSource, of: StreamRef): LiveStream | null {
    const known = this.#known.get(nameOf(log, of));
    return known !== undefined && known.stream.isOpen ? known.stream : null;
  }

  /**
   * Opens the stream; null if the organization has no such stream. It is closed again unless a subscriber joins within
   * a few seconds.
   *
   * @throws `Fault` `store_unavailable`
   */
  async open(source: LiveSource, of: StreamRef): Promise<LiveStream | null> {
    if (this.#isClosed) throw storeUnavailable('Redis');
    const name = nameOf(source.log, of);
    let known = this.#known.get(name);
    if (known === undefined) {
      const stream = new LiveStream(source, of, this.#parts);
      known = { stream, opening: stream.open(), idleTicks: 0 };
      this.#known.set(name, known);
      known.opening.then(
        (exists) => exists || this.#forget(name, stream),
        () => this.#forget(name, stream),
      );
    }
    known.idleTicks = 0;
    return (await known.opening) ? known.stream : null;
  }

  tick(): void {
    this.#ticks += 1;
    for (const [name, known] of this.#known) {
      if (known.stream.size > 0 || !known.stream.isOpen) known.idleTicks = 0;
      else if (++known.idleTicks > MAX_IDLE_TICKS) this.#forget(name, known.stream);
    }
    if (this.#ticks % SWEEP_TICKS === 0) this.#sweepSoon();
  }

  flush(): void {
    for (const { stream } of this.#known.values()) stream.flush();
  }

  close(): void {
    this.#isClosed = true;
    for (const [name, { stream }] of this.#known) this.#forget(name, stream);
  }

  #forget(name: string, stream: LiveStream): void {
    if (this.#known.get(name)?.stream === stream) this.#known.delete(name);
    stream.close();
  }

  #sweepSoon(): void {
    this.#isSweepDue = true;
    if (!this.#isSweeping) void this.#sweep();
  }

  /** Compares the streams with their read models: pub/sub may lose the last message before a silence. */
  async #sweep(): Promise<void> {
    this.#isSweeping = true;
    while (this.#isSweepDue) {
      // All topics are received again at the same time: one sweep covers them.
      await immediate();
      this.#isSweepDue = false;
      const streams = [...this.#known.values()].map(({ stream }) => stream).filter(({ isOpen }) => isOpen);
      try {
        for (let from = 0; from < streams.length; from += HEADS_PER_QUERY) {
          const some = streams.slice(from, from + HEADS_PER_QUERY);
          const heads = await this.#heads(some);
          for (const [index, stream] of some.entries()) {
            stream.announce(heads[index] ?? 0);
            stream.retryValues();
          }
        }
      } catch (error) {
        this.#parts.warn(error, 'streams could not be compared with their read models');
      }
    }
    this.#isSweeping = false;
  }
}

function nameOf({ category }: FrameSource, { organizationId, id }: StreamRef): string {
  return `${category} ${organizationId} ${id}`;
}
