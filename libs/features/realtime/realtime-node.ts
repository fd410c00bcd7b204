import { setTimeout as delay } from 'node:timers/promises';

import { newId } from '#libs/kernel/ids.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import { AccessChecks } from './access-checks.ts';
import type { ChannelListener } from './channel-listener.ts';
import { Heartbeats, TICK_MS } from './heartbeats.ts';
import { LiveChannels } from './live-channels.ts';
import { CLOSE, RESUME_WAIT_MS } from './protocol.ts';
import { realtimeMetrics } from './realtime.metrics.ts';
import type { RealtimeMetrics } from './realtime.metrics.ts';
import type {
  AccessChange,
  ChannelLog,
  ListenerAccess,
  LiveCommands,
  LiveValues,
  PublishedHeads,
} from './realtime.ports.ts';

export interface RealtimePorts {
  readonly log: ChannelLog;
  readonly heads: PublishedHeads;
  readonly values: LiveValues;
  readonly access: ListenerAccess;
  readonly commands: LiveCommands;
}

/** One that has to begin within a time. */
export interface Awaited {
  onTooLate(): void;
}

const ACCESS_TICKS = 20;
const FLUSH_MS = 5_000;
const MAX_SCOPES = 100;

/**
 * All listeners of this process, websockets and event streams, and what they share: channels, one clock, and the
 * end. `tick` runs once a second for all of them.
 */
export class RealtimeNode {
  /** Names this node among all. */
  readonly id = newId();
  /** Milliseconds between its ticks. */
  readonly tickMs: number;
  readonly channels: LiveChannels;
  readonly commands: LiveCommands;
  readonly metrics: RealtimeMetrics;
  readonly #platform: Pick<Platform, 'log'>;
  /** Its listeners, too. */
  readonly #heartbeats = new Heartbeats();
  readonly #checks: AccessChecks;
  /** Not checked yet. */
  readonly #fresh = new Set<ChannelListener>();
  /** In the order in which they came, each with the tick by which it must have begun. */
  readonly #awaited = new Map<Awaited, number>();
  readonly #running = new Set<Promise<unknown>>();
  readonly #clock: NodeJS.Timeout;
  readonly #unsubscribe: () => void;
  readonly #scopes = new Map<string, readonly string[]>();
  #sessions = 0;
  #ticks = 0;
  #stopping: Promise<void> | undefined;

  /** @param tickMs a test's clock may run faster, with all that counts in ticks */
  constructor(platform: Pick<Platform, 'topics' | 'log' | 'metrics'>, ports: RealtimePorts, tickMs = TICK_MS) {
    this.#platform = platform;
    this.tickMs = tickMs;
    this.metrics = realtimeMetrics(platform.metrics);
    this.commands = ports.commands;
    this.#checks = new AccessChecks({
      access: ports.access,
      now: () => this.#ticks,
      onFailure: (error) => this.warn(error, 'access could not be checked'),
    });
    this.channels = new LiveChannels(platform, {
      ...ports,
      metrics: this.metrics,
      onAccessChange: (channel) => this.#checks.request(channel.members()),
    });
    this.#unsubscribe = ports.access.onChange((change) => this.#onAccessChange(change));
    this.#clock = setInterval(() => this.#tick(), tickMs);
    this.#clock.unref();
  }

  /** Seconds since the node began. */
  get now(): number {
    return this.#ticks;
  }

  /** A number that no other session of this node has. */
  nextSession(): number {
    return (this.#sessions += 1);
  }

  /** As few as there are: most keys may do the same. */
  shared(scopes: readonly string[]): readonly string[] {
    const name = scopes.join(' ');
    const known = this.#scopes.get(name);
    if (known === undefined && this.#scopes.size < MAX_SCOPES) this.#scopes.set(name, scopes);
    return known ?? scopes;
  }

  get isStopping(): boolean {
    return this.#stopping !== undefined;
  }

  /** Takes a listener in: from now on it is asked for signs of life, and whether it may listen. */
  add(listener: ChannelListener): void {
    this.#heartbeats.add(listener);
    this.#checks.begin(listener);
    // The grant may be older than the loss of what it stood for. With the next tick: all that came since together.
    this.#fresh.add(listener);
  }

  /** Once it is closed altogether. */
  remove(listener: ChannelListener): void {
    this.#fresh.delete(listener);
    this.#heartbeats.remove(listener);
  }

  #onAccessChange({ kind, concerns }: AccessChange): void {
    const concerned = [...this.#heartbeats].filter(({ grant }) => concerns(grant));
    if (kind === 'doubtful') return this.#checks.request(concerned);
    for (const listener of concerned) listener.close(CLOSE.accessLost, 'Access to the channel was lost');
  }

  await(one: Awaited): void {
    this.#awaited.set(one, this.#ticks + RESUME_WAIT_MS / TICK_MS);
  }

  begun(one: Awaited): void {
    this.#awaited.delete(one);
  }

  /** Work that the stop waits for. */
  track(work: Promise<unknown>): void {
    this.#running.add(work);
    void work.finally(() => this.#running.delete(work));
  }

  warn(error: unknown, message: string): void {
    this.#platform.log.warn({ err: error }, `realtime: ${message}`);
  }

  /**
   * Takes nobody in any more, answers what has begun, writes out what is due and closes all with 1012; within
   * about five seconds. Who is still there then is cut off, and resumes elsewhere just the same.
   */
  stop(): Promise<void> {
    return (this.#stopping ??= this.#stop());
  }

  async #stop(): Promise<void> {
    const abort = new AbortController();
    const late = delay(FLUSH_MS, undefined, { signal: abort.signal }).catch(() => undefined);
    await Promise.race([Promise.allSettled(this.#running), late]);
    this.channels.flush();
    const all = [...this.#heartbeats];
    for (const listener of all) listener.close(CLOSE.restart, 'This process is stopping: connect again and resume');
    await Promise.race([Promise.all(all.map((listener) => listener.closed())), late]);
    abort.abort();
    for (const listener of this.#heartbeats) listener.cut();
    clearInterval(this.#clock);
    this.#unsubscribe();
    this.channels.close();
  }

  #tick(): void {
    this.#ticks += 1;
    this.#heartbeats.tick();
    for (const [one, deadline] of this.#awaited) {
      if (deadline >= this.#ticks) break;
      this.#awaited.delete(one);
      one.onTooLate();
    }
    this.channels.tick();
    this.#checks.tick([...this.#heartbeats]);
    this.#checks.request(this.#ticks % ACCESS_TICKS === 0 ? this.#heartbeats : this.#fresh);
    this.#fresh.clear();
    this.#gauge();
  }

  #gauge(): void {
    const open = { websocket: 0, 'event-stream': 0 };
    for (const { form } of this.#heartbeats) open[form] += 1;
    this.metrics.listeners('websocket', open.websocket);
    this.metrics.listeners('event-stream', open['event-stream']);
    this.metrics.channels(this.channels.size);
  }
}
