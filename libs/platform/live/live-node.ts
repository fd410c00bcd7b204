import { settledWithin } from '#libs/platform/lifecycle/index.ts';

import type { TopicSubscriptions } from '#libs/platform/redis/index.ts';
import type { Metrics } from '#libs/platform/telemetry/index.ts';

import { AccessChecks } from './access-checks.ts';
import type { AccessChange, LiveAccess } from './access.ts';
import { CLOSE } from './close-codes.ts';
import type { FrameFormat } from './live-frame.ts';
import { FrameMemory } from './frame-memory.ts';
import { LiveStreams, type LiveLog, type LiveStreamsOptions } from './live-streams.ts';
import { liveMetrics, type LiveMetrics } from './live.metrics.ts';
import { TICK_MS, type Subscriber } from './subscriber.ts';

export interface LiveNodeOptions extends Pick<LiveStreamsOptions, 'heads'> {
  /** Limit of the memory of kept frames. Default: {@link MAX_KEPT_BYTES}. */
  readonly maxKeptBytes?: number;
}

/** The clients of stores and the logs that the subscribers of a process share. */
export interface LivePlatform {
  readonly topics: Pick<TopicSubscriptions, 'subscribe'>;
  readonly log: LiveLog;
  readonly metrics: Metrics;
}

const ACCESS_TICKS = 20;
const FLUSH_MS = 5_000;
const UNGUARDED: LiveAccess = {
  check: async () => 'unknown',
  usersOf: async () => null,
  onChange: () => () => undefined,
};

/**
 * The subscribers of this process, websockets and event streams, with what they follow, one clock that ticks every second,
 * and the shutdown. One per process.
 */
export class LiveNode {
  readonly streams: LiveStreams;
  readonly metrics: LiveMetrics;
  readonly #frames: FrameMemory;
  readonly #log: LiveLog;
  readonly #subscribers = new Set<Subscriber>();
  readonly #open: Record<FrameFormat, number> = { websocket: 0, 'event-stream': 0, 'typed-event-stream': 0 };
  readonly #checks: AccessChecks;
  /** Subscribers that were never checked. */
  readonly #unchecked = new Set<Subscriber>();
  readonly #running = new Set<Promise<unknown>>();
  readonly #clock: NodeJS.Timeout;
  #access: LiveAccess = UNGUARDED;
  #unsubscribe = (): void => undefined;
  #ticks = 0;
  #stopping: Promise<void> | undefined;

  /** @param tickMs lets tests run the clock, and all times counted in ticks, faster */
  constructor(platform: LivePlatform, { heads, maxKeptBytes }: LiveNodeOptions, tickMs = TICK_MS) {
    this.#frames = new FrameMemory(maxKeptBytes);
    this.#log = platform.log;
    this.metrics = liveMetrics(platform.metrics);
    this.#checks = new AccessChecks({
      access: () => this.#access,
      now: () => this.#ticks,
      onFailure: (error) => this.warn(error, 'access could not be checked'),
    });
    this.streams = new LiveStreams(platform, {
      heads,
      frames: this.#frames,
      metrics: this.metrics,
      onAccessChange: (stream) => this.#checks.request(stream.subscribers()),
    });
    this.#clock = setInterval(() => this.#tick(), tickMs);
    this.#clock.unref();
  }

  /** Decides from now on whether subscribers keep their access. Without it, none of them does for long. */
  guard(access: LiveAccess): void {
    this.#access = access;
    this.#unsubscribe = access.onChange((change) => this.#onAccessChange(change));
  }

  /** Seconds since the node started. */
  get now(): number {
    return this.#ticks;
  }

  get isStopping(): boolean {
    return this.#stopping !== undefined;
  }

  /** Starts pings and access checks of the subscriber. */
  add(subscriber: Subscriber): void {
    this.#subscribers.add(subscriber);
    this.#open[subscriber.format] += 1;
    this.#checks.start(subscriber);
    // Access may have ended since the grant was made. The next tick checks all new subscribers together.
    this.#unchecked.add(subscriber);
  }

  /** Must be called once its connection is closed. */
  remove(subscriber: Subscriber): void {
    this.#unchecked.delete(subscriber);
    if (this.#subscribers.delete(subscriber)) this.#open[subscriber.format] -= 1;
  }

  #onAccessChange({ kind, concerns }: AccessChange): void {
    const concerned = [...this.#subscribers].filter(({ grant }) => concerns(grant));
    if (kind === 'doubtful') return this.#checks.request(concerned);
    for (const subscriber of concerned) subscriber.close(CLOSE.accessLost, subscriber.reasons.lost);
  }

  /** The shutdown waits for this work. */
  track(work: Promise<unknown>): void {
    this.#running.add(work);
    void work.finally(() => this.#running.delete(work));
  }

  warn(error: unknown, message: string): void {
    this.#log.warn({ err: error }, `realtime: ${message}`);
  }

  /**
   * Refuses new subscribers, answers running commands, writes due frames and closes all with 1012, within about five
   * seconds. Then destroys connections that are still open; their clients resume at another node.
   */
  stop(): Promise<void> {
    return (this.#stopping ??= this.#stop());
  }

  async #stop(): Promise<void> {
    const until = performance.now() + FLUSH_MS;
    await settledWithin(FLUSH_MS, Promise.allSettled(this.#running));
    this.streams.flush();
    const all = [...this.#subscribers];
    for (const subscriber of all) subscriber.close(CLOSE.restart, subscriber.reasons.stopping);
    await settledWithin(until - performance.now(), Promise.all(all.map((subscriber) => subscriber.closed())));
    for (const subscriber of this.#subscribers) subscriber.destroy();
    clearInterval(this.#clock);
    this.#unsubscribe();
    this.streams.close();
  }

  #tick(): void {
    this.#ticks += 1;
    const nowMs = Date.now();
    for (const subscriber of this.#subscribers) {
      subscriber.onTick(this.#ticks);
      this.#checks.expire(subscriber, nowMs);
    }
    this.streams.tick();
    this.#checks.request(this.#ticks % ACCESS_TICKS === 0 ? this.#subscribers : this.#unchecked);
    this.#unchecked.clear();
    for (const form of ['websocket', 'event-stream'] as const) this.metrics.subscribers.set(this.#open[form], { form });
    this.metrics.entityStreams.set(this.#open['typed-event-stream']);
    this.metrics.channels.set(this.streams.size);
    this.metrics.keptBytes.set(this.#frames.bytes);
    this.metrics.evicted.add({}, this.#frames.takeEvicted());
  }
}
