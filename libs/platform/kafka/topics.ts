import type { TopicSpec } from './connection.ts';

/** The names of one deployment in Kafka. Deployments with different prefixes can share a Kafka cluster. */
export interface LogTopics {
  /** Every event of the log, as `LogMessages` encodes it. */
  readonly log: string;
  /** The public events, as `PublicMessages` encodes them. */
  readonly events: string;
  /** An empty topic with one partition: the relay that is assigned the partition is active. */
  readonly relayLock: string;
  /** The consumer group of the relays. The metadata of its offset is the checkpoint of the relay. */
  readonly relayGroup: string;
  /** The consumer group of the projectors. Its offsets are for monitoring: the read models store the checkpoints. */
  readonly projectorGroup: string;
}

/** @param prefix the variable `KAFKA_TOPIC_PREFIX` */
export function logTopics(prefix: string): LogTopics {
  return {
    log: `${prefix}.log`,
    events: `${prefix}.events`,
    relayLock: `${prefix}.relay`,
    relayGroup: `${prefix}.relay`,
    projectorGroup: `${prefix}.projector`,
  };
}

/** Limits the number of members that share the work. Another number would move streams between partitions. */
export const LOG_PARTITIONS = 12;
/** The event store limits an event to 1 MiB, and a message is little larger than its event. */
const MAX_BATCH_BYTES = 4 * 1024 * 1024;

export function specsOf({ log, events, relayLock }: LogTopics, hasPublicEvents: boolean): readonly TopicSpec[] {
  // Independent of the brokers' defaults.
  const settings = {
    'max.message.bytes': `${MAX_BATCH_BYTES}`,
    // A broker may otherwise recompress messages, and kafkajs reads only gzip.
    'compression.type': 'producer',
    // Compaction would keep only the last event of each stream.
    'cleanup.policy': 'delete',
  };
  return [
    { topic: log, partitions: LOG_PARTITIONS, settings },
    ...(hasPublicEvents ? [{ topic: events, partitions: LOG_PARTITIONS, settings }] : []),
    { topic: relayLock, partitions: 1 },
  ];
}
