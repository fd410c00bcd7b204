import type { GlobalPosition } from '#libs/kernel/event.ts';
import { comparePositions } from '#libs/platform/eventstore/index.ts';
import { backoffMs } from '#libs/platform/lifecycle/index.ts';
import type { KafkaConnection } from './connection.ts';
import type { LogMessages } from './log-message.ts';

export interface WatermarksParts {
  readonly kafka: KafkaConnection;
  readonly messages: LogMessages;
  /** The topic of the log. */
  readonly topic: string;
  readonly partitions: number;
  /** Kafka has acknowledged all messages of the partition up to it; null for none. */
  readonly positionOf: (partition: number) => GlobalPosition | null;
  /** Called after each attempt: the error of a refusal, or null if all watermarks are stored. */
  readonly onWritten: (refusal: unknown) => void;
}

/** Writes to each partition of the log up to which position it holds all events. */
export class Watermarks {
  readonly #parts: WatermarksParts;
  readonly #written = new Map<number, GlobalPosition>();
  #refusals = 0;
  #notBeforeMs = 0;

  constructor(parts: WatermarksParts) {
    this.#parts = parts;
  }

  /** @returns false while a partition refuses: a later call retries it, after a pause. @throws Fault if no broker has answered */
  async write(): Promise<boolean> {
    const { kafka, messages, topic, partitions, positionOf, onWritten } = this.#parts;
    if (Date.now() < this.#notBeforeMs) return false;
    const due = Array.from({ length: partitions }, (_, partition) => ({
      partition,
      position: positionOf(partition),
    })).flatMap(({ partition, position }) => {
      const written = this.#written.get(partition);
      const isNew = position !== null && (written === undefined || comparePositions(position, written) > 0);
      return isNew ? [{ partition, position, message: messages.encodeWatermark({ topic, partition }, position) }] : [];
    });
    if (due.length === 0) return true;
    const undelivered = await kafka.deliver(
      topic,
      due.map(({ message }) => message),
    );
    const failed = new Set(undelivered.map(({ message }) => message));
    for (const { partition, position, message } of due) {
      if (!failed.has(message)) this.#written.set(partition, position);
    }
    const [failure] = undelivered;
    if (failed.size === due.length && undelivered.every(({ isAnswered }) => !isAnswered)) throw failure?.error;
    this.#refusals = failure === undefined ? 0 : this.#refusals + 1;
    if (failure !== undefined)
      this.#notBeforeMs = Date.now() + backoffMs(this.#refusals, { firstMs: 500, maxMs: 30_000 });
    onWritten(failure?.error ?? null);
    return failure === undefined;
  }
}
