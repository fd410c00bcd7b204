import type { GlobalPosition } from '#libs/kernel/event.ts';
import { pause } from '#libs/platform/lifecycle/index.ts';
import type { KafkaConnection } from './connection.ts';
import type { LogMessages } from './log-message.ts';
import type { LogTopics } from './topics.ts';

export interface WatermarkParts {
  readonly kafka: KafkaConnection;
  readonly messages: LogMessages;
  readonly topics: LogTopics;
}

/** Under load, so often at most. */
const EVERY_MS = 500;
/** With nothing sent for so long, the work has come to an end for now. */
const QUIET_MS = 50;

/**
 * Writes into every partition of the log, beside the work of a relay, how far it has come.
 *
 * True whoever says it and however late, because it is said only of what Kafka had acknowledged: a relay that was
 * paused, and goes on beside its successor, says something that has long been so. In a topic that was made anew it says
 * it of what the one before had: whoever begins with a topic has to have read the log since that was made.
 *
 * One at the beginning, for what a relay before this one did not come to say; then some after the last event, and none
 * while there is nothing to do.
 */
export class WatermarkWriter {
  readonly #parts: WatermarkParts;
  #newest: GlobalPosition | null;
  #written: GlobalPosition | null = null;
  #notedMs = 0;

  constructor(parts: WatermarkParts, from: GlobalPosition | 'start') {
    this.#parts = parts;
    this.#newest = from === 'start' ? null : from;
  }

  /** Kafka has acknowledged every event up to `position`. */
  note(position: GlobalPosition): void {
    this.#newest = position;
    this.#notedMs = Date.now();
  }

  /** Until `signal` aborts. @throws what the connection throws */
  async run(signal: AbortSignal): Promise<void> {
    let partitions: readonly number[] | null = null;
    for (let writtenMs = 0; !signal.aborted; await pause(QUIET_MS, signal)) {
      const now = Date.now();
      const position = this.#newest;
      if (position === null || position === this.#written) continue;
      if (now - writtenMs < EVERY_MS && now - this.#notedMs < QUIET_MS) continue;
      partitions ??= await this.#partitions();
      await this.#write(partitions, position);
      this.#written = position;
      writtenMs = Date.now();
    }
  }

  async #write(partitions: readonly number[], position: GlobalPosition): Promise<void> {
    const { kafka, messages, topics } = this.#parts;
    const marks = partitions.map((partition) => messages.encodeWatermark({ topic: topics.log, partition }, position));
    await kafka.send(topics.log, marks);
  }

  /** As they are, not as we would make them: the topic may have been there before. */
  async #partitions(): Promise<readonly number[]> {
    const { kafka, topics } = this.#parts;
    const { topics: found } = await kafka.withAdmin((admin) => admin.fetchTopicMetadata({ topics: [topics.log] }));
    return found.flatMap(({ partitions }) => partitions.map(({ partitionId }) => partitionId));
  }
}
