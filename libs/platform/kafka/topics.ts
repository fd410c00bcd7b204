import type { TopicSpec } from './connection.ts';

/** Names of what one Parley has in Kafka. Several may share a Kafka under different prefixes. */
export interface LogTopics {
  /** Every event of the log, as {@link LogMessages} writes it. */
  readonly log: string;
  /** What other teams may read of it, as `PublicMessages` writes it. */
  readonly events: string;
  /** Without messages: the relay that is assigned its one partition is the active one. */
  readonly relayLock: string;
  /** The consumer group of the relays; the position that they have reached is kept with its offset. */
  readonly relayGroup: string;
  /** The consumer group of the projectors. How far they are is kept with the read models, and here for who watches. */
  readonly projectorGroup: string;
}

/** What `KAFKA_TOPIC_PREFIX` is by default. */
export const DEFAULT_TOPIC_PREFIX = 'parley';

export function logTopics(prefix: string): LogTopics {
  return {
    log: `${prefix}.log`,
    events: `${prefix}.events`,
    relayLock: `${prefix}.relay`,
    relayGroup: `${prefix}.relay`,
    projectorGroup: `${prefix}.projector`,
  };
}

/** The most consumers that may share the work; more of them later would move streams between partitions. */
const LOG_PARTITIONS = 12;
/** An event is 1 MiB at most where it is stored, and a message is little more than its event. */
const LARGEST_BATCH = 4 * 1024 * 1024;

/** @param isPublic whether other teams are told of events as well */
export function specsOf({ log, events, relayLock }: LogTopics, isPublic: boolean): readonly TopicSpec[] {
  // Whatever the brokers do by default.
  const settings = {
    'max.message.bytes': `${LARGEST_BATCH}`,
    // Of what a broker compresses by itself, kafkajs can read gzip alone.
    'compression.type': 'producer',
    // Every event is needed, not the last of each stream.
    'cleanup.policy': 'delete',
  };
  return [
    { topic: log, partitions: LOG_PARTITIONS, settings },
    ...(isPublic ? [{ topic: events, partitions: LOG_PARTITIONS, settings }] : []),
    { topic: relayLock, partitions: 1 },
  ];
}
