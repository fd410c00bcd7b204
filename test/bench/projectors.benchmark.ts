/** Projectors that share a log over Kafka (one, two and four of them) against one that reads the log itself. */
import { Redis } from 'ioredis';
import { comparePositions, decodePosition } from '#libs/platform/eventstore/index.ts';
import { KafkaConnection, LogMessages, logTopics, Relay } from '#libs/platform/kafka/index.ts';
import { silentLog } from '#libs/platform/lifecycle/index.ts';
import { CHANNEL_READ_MODEL } from '#libs/features/channels/index.ts';
import { projectionKeys, readModelPrefix } from '#libs/platform/readmodel/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import { startTestEventStore } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { startTestKafkaProcess, type TestKafkaProcess } from '#test/support/kafka/broker.ts';
import { startTestRedis } from '#test/support/redis.ts';

import type { Benchmark, Sample } from './benchmark.ts';
import { channelTurns, type LogShape } from './channel-log.ts';
import { askOnce, type Child, cpuSecondsOf, startChild } from './child-process.ts';
import { openBenchPlatform } from './sides/bench-platform.ts';

/** In this order: `start` prepares everything, `go` lets the first event through, `finish` ends it. */
export type ProjectorTask =
  | {
      readonly kind: 'start';
      readonly eventstoreUrl: string;
      readonly redisUrl: string;
      /** Null: the log itself is read. */
      readonly brokers: readonly string[] | null;
    }
  | { readonly kind: 'go' }
  | { readonly kind: 'finish' };

/** Of `finish`. Times are wall-clock times, in ms. */
export interface ProjectorAnswer {
  readonly events: number;
  readonly beganMs: number;
  readonly lastAppliedMs: number;
  /** Between the two. */
  readonly cpuSeconds: number;
}

/** 500 channels. */
const SHAPE: LogShape = { events: 50_000, eventsPerChannel: 100, active: 64 };
const HANG_TIMEOUT = { timeoutMs: 600_000, everyMs: 50 };
const TOPICS = logTopics('parley');

const row = (count: number) => ({
  title: `projectors over Kafka: ${count}`,
  ours: `kafka-${count}`,
  theirs: 'log',
  figure: 'rate',
  unit: 'events/s',
});

export const projectorsBenchmark: Benchmark = {
  name: 'projectors',
  rows: [row(1), row(2), row(4)],
  async prepare({ amount }) {
    const shape = { ...SHAPE, events: Math.round(SHAPE.events * amount) };
    const [eventStore, redis, broker] = await Promise.all([
      startTestEventStore({ mode: 'process' }),
      startTestRedis(),
      startTestKafkaProcess(),
    ]);
    const urls = { eventstoreUrl: eventStore.url, redisUrl: redis.url };
    const { platform } = await openBenchPlatform(urls);
    const raw = new Redis(redis.url);
    const kafka = new KafkaConnection({ brokers: broker.brokers, log: silentLog });
    const stopRelay = startRelay(platform, kafka);
    const stage = new Stage({ ...urls, platform, raw, kafka, broker }, shape.events);
    await stage.keepBeginning([...channelTurns(shape).take(1)]);
    await askOnce('sides/fill-log.process.ts', { eventstoreUrl: eventStore.url, shape, skip: 1 });
    await stage.relayed(stopRelay.position);
    return {
      sides: {
        log: () => stage.measure(1, false),
        'kafka-1': () => stage.measure(1, true),
        'kafka-2': () => stage.measure(2, true),
        'kafka-4': () => stage.measure(4, true),
      },
      async cleanUp() {
        await stopRelay.stop();
        raw.disconnect();
        await kafka.close();
        await platform.close();
        await Promise.all([eventStore.stop(), redis.stop(), broker.stop()]);
      },
    };
  },
};

/** It fills the topic before the measurement, and is idle during it. */
function startRelay(platform: Platform, kafka: KafkaConnection) {
  const abort = new AbortController();
  const messages = new LogMessages(platform.tokenSecret);
  const relay = new Relay({
    feed: platform.feed,
    store: platform.store,
    kafka,
    messages,
    topics: TOPICS,
    onProblem: () => undefined,
  });
  const ended = relay.run(abort.signal);
  return {
    position: () => relay.progress.position,
    async stop() {
      abort.abort();
      await ended;
    },
  };
}

interface StageParts {
  readonly eventstoreUrl: string;
  readonly redisUrl: string;
  readonly platform: Platform;
  readonly raw: Redis;
  readonly kafka: KafkaConnection;
  readonly broker: TestKafkaProcess;
}

type Turns = ReturnType<typeof channelTurns> extends Generator<infer Turn> ? readonly Turn[] : never;

/** The stores, and the contents of Redis at the beginning of each pass. */
class Stage {
  readonly #parts: StageParts;
  readonly #events: number;
  #beginning: readonly { readonly key: string; readonly dump: Buffer }[] = [];

  constructor(parts: StageParts, events: number) {
    this.#parts = parts;
    this.#events = events;
  }

  /**
   * Read models as stopped projectors leave them after the first events of the log: complete, and with checkpoints
   * for the partitions. Later events are new to both ways of reading.
   */
  async keepBeginning(turns: Turns): Promise<void> {
    const { platform, raw } = this.#parts;
    for (const { stream, after, events } of turns) await platform.store.append(stream, after, events);
    const child = startChild('sides/parley-projector.process.ts');
    try {
      await child.ask<object>(this.#start(true));
      await child.ask<object>({ kind: 'go' });
      await this.#atHead();
      await child.ask<object>({ kind: 'finish' });
    } finally {
      await child.stop();
    }
    const keys = await raw.keys('*');
    this.#beginning = await Promise.all(
      keys.map(async (key) => {
        const dump = await raw.dumpBuffer(key);
        if (dump === null) throw new Error(`${key} is gone`);
        return { key, dump };
      }),
    );
  }

  async relayed(position: () => Relay['progress']['position']): Promise<void> {
    const head = await this.#parts.platform.feed.head();
    await eventually(() => {
      const at = position();
      return at !== null && head !== null && comparePositions(at, head) >= 0;
    }, HANG_TIMEOUT);
  }

  /** Twice in the same processes: the first time warms up their code. */
  async measure(count: number, shared: boolean): Promise<Sample> {
    const children = Array.from({ length: count }, () => startChild('sides/parley-projector.process.ts'));
    try {
      await this.#pass(children, shared);
      return await this.#pass(children, shared);
    } finally {
      await Promise.all(children.map((child) => child.stop()));
    }
  }

  async #pass(children: readonly Child[], shared: boolean): Promise<Sample> {
    await this.#setBack();
    const before = await this.#applied();
    await Promise.all(children.map((child) => child.ask<object>(this.#start(shared))));
    if (shared) await eventually(() => this.#areMembers(children.length), HANG_TIMEOUT);
    const cpu = await this.#cpu();
    await Promise.all(children.map((child) => child.ask<object>({ kind: 'go' })));
    await this.#atHead();
    const spent = await this.#cpu();
    const answers = await Promise.all(children.map((child) => child.ask<ProjectorAnswer>({ kind: 'finish' })));
    const after = await this.#applied();
    if (after !== this.#events) throw new Error(`${after} events are applied instead of ${this.#events}`);
    const began = Math.min(...answers.map(({ beganMs }) => beganMs));
    const seconds = (Math.max(...answers.map(({ lastAppliedMs }) => lastAppliedMs)) - began) / 1_000;
    return {
      figures: {
        rate: (after - before) / seconds,
        seconds,
        cpuOfProjectors: answers.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0),
        cpuOfRedis: spent.redis - cpu.redis,
        cpuOfBroker: spent.broker - cpu.broker,
        // Of the process with the most events: with few streams, partitions are not equal.
        largestShare: Math.max(...answers.map(({ events }) => events)) / (after - before),
      },
    };
  }

  #start(shared: boolean): ProjectorTask {
    const { eventstoreUrl, redisUrl, broker } = this.#parts;
    return { kind: 'start', eventstoreUrl, redisUrl, brokers: shared ? broker.brokers : null };
  }

  async #setBack(): Promise<void> {
    const { raw } = this.#parts;
    await raw.flushall();
    for (const { key, dump } of this.#beginning) await raw.restore(key, 0, dump);
  }

  /** Waits until everything in the log is applied, by the checkpoints of the read models. */
  async #atHead(): Promise<void> {
    const { platform, raw } = this.#parts;
    const head = await platform.feed.head();
    if (head === null) throw new Error('the log is empty');
    await eventually(async () => {
      const checkpoint = await raw.get(projectionKeys(CHANNEL_READ_MODEL).checkpoint);
      return checkpoint !== null && comparePositions(decodePosition(checkpoint), head) >= 0;
    }, HANG_TIMEOUT);
  }

  /** Events in the read models, by the revision of each channel. */
  async #applied(): Promise<number> {
    const { raw } = this.#parts;
    const keys = (await raw.keys(`${readModelPrefix(CHANNEL_READ_MODEL)}*`)).filter((key) => key.endsWith(':revision'));
    const revisions = keys.length === 0 ? [] : await raw.mget(keys);
    return revisions.reduce((sum, revision) => sum + Number(revision) + 1, 0);
  }

  async #areMembers(count: number): Promise<boolean> {
    const { groups } = await this.#parts.kafka.withAdmin((admin) => admin.describeGroups([TOPICS.projectorGroup]));
    return groups[0]?.state === 'Stable' && groups[0].members.length === count;
  }

  async #cpu(): Promise<{ readonly redis: number; readonly broker: number }> {
    const { raw, broker } = this.#parts;
    const info = await raw.info('cpu');
    const used = [...info.matchAll(/^used_cpu_(?:sys|user):(\S+)/gm)].map(([, seconds]) => Number(seconds));
    return { redis: used.reduce((sum, seconds) => sum + seconds, 0), broker: await cpuSecondsOf(broker.pid() ?? 0) };
  }
}
