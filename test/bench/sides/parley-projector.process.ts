/** A projector as `npx parley projector` runs it, which waits for a message before the first event. */
import { KafkaConnection, KafkaEventFeed, LogMessages, logTopics } from '#libs/platform/kafka/index.ts';
import { silentLog } from '#libs/platform/lifecycle/index.ts';
import { PartitionCheckpoints } from '#libs/platform/readmodel/index.ts';
import { composeReadModels, PROJECTIONS } from '#services/features.ts';
import { type PartitionedSource, ProjectionLoop } from '#services/projector/projection-loop.ts';

import { answerTasks } from '../child-process.ts';
import type { ProjectorAnswer, ProjectorTask } from '../projectors.benchmark.ts';
import { type BenchPlatform, openBenchPlatform } from './bench-platform.ts';

type Start = Extract<ProjectorTask, { kind: 'start' }>;

/** Kept from one pass to the next, like its code. */
let opened: BenchPlatform | null = null;
let pass: Pass | null = null;

/** From `start` to `finish`. */
class Pass {
  readonly #gate = Promise.withResolvers<void>();
  readonly #member = Promise.withResolvers<void>();
  readonly #abort = new AbortController();
  readonly #kafka: KafkaConnection | null;
  readonly #ended: Promise<void>;
  #cpu = process.cpuUsage();
  #beganMs = 0;
  #events = 0;
  #lastAppliedMs = 0;
  #cpuSeconds = 0;

  constructor({ platform }: BenchPlatform, brokers: readonly string[] | null) {
    this.#kafka = brokers && new KafkaConnection({ brokers, log: silentLog });
    const loop = new ProjectionLoop({
      ...composeReadModels(platform),
      feed: platform.feed,
      ...(this.#kafka !== null && { partitioned: this.#partitioned(platform, this.#kafka) }),
      onProblem: (error) => console.error(error),
      onLost: (reason) => console.error(reason),
      onProgress: ({ eventsSeen }) => this.#note(eventsSeen),
    });
    if (brokers === null) this.#member.resolve();
    const run = async (): Promise<void> => {
      // With Kafka it joins its group before the message, and waits at the beginning of its partitions.
      if (brokers === null) await this.#gate.promise;
      await loop.run(this.#abort.signal);
    };
    this.#ended = run();
  }

  isReady(): Promise<void> {
    return this.#member.promise;
  }

  go(): void {
    this.#beganMs = nowMs();
    this.#cpu = process.cpuUsage();
    this.#gate.resolve();
  }

  async finish(): Promise<ProjectorAnswer> {
    this.#abort.abort();
    await this.#ended;
    await this.#kafka?.close();
    return {
      events: this.#events,
      beganMs: this.#beganMs,
      lastAppliedMs: this.#lastAppliedMs,
      cpuSeconds: this.#cpuSeconds,
    };
  }

  #partitioned({ redis, tokenSecret }: BenchPlatform['platform'], kafka: KafkaConnection): PartitionedSource {
    const { log: topic, projectorGroup: groupId } = logTopics('parley');
    const feed = new KafkaEventFeed({ kafka, messages: new LogMessages(tokenSecret), topic, groupId });
    return {
      partitions: new PartitionCheckpoints(redis, PROJECTIONS),
      feed: {
        ends: () => feed.ends(),
        subscribe: (options) =>
          feed.subscribe({
            ...options,
            from: async () => {
              this.#member.resolve();
              await this.#gate.promise;
              return options.from();
            },
          }),
      },
    };
  }

  #note(eventsSeen: number): void {
    if (eventsSeen === this.#events) return;
    this.#events = eventsSeen;
    this.#lastAppliedMs = nowMs();
    const { user, system } = process.cpuUsage(this.#cpu);
    this.#cpuSeconds = (user + system) / 1e6;
  }
}

answerTasks<ProjectorTask, ProjectorAnswer | object>(async (task) => {
  if (task.kind === 'start') return start(task);
  if (pass === null) throw new Error('it was not started');
  if (task.kind === 'finish') return pass.finish();
  pass.go();
  return {};
});

async function start(task: Start): Promise<object> {
  opened ??= await openBenchPlatform(task);
  pass = new Pass(opened, task.brokers);
  await pass.isReady();
  return {};
}

/** Comparable between processes. */
function nowMs(): number {
  return performance.timeOrigin + performance.now();
}
