import type { Config } from '#libs/platform/config/index.ts';
import {
  KafkaConnection,
  KafkaEventFeed,
  kafkaOptionsOf,
  LogMessages,
  logTopics,
  publishedIn,
} from '#libs/platform/kafka/index.ts';
import { PartitionCheckpoints, type ReadModelName } from '#libs/platform/readmodel/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import type { PartitionedSource } from './projection-loop.ts';

/** The partitions of the log in Kafka, which the projectors of all processes divide among them. */
export function openKafkaSource(
  { log, metrics, redis, tokenSecret }: Platform,
  config: Config,
  readModels: readonly ReadModelName[],
): { readonly source: PartitionedSource; close(): Promise<void> } {
  const { log: topic, projectorGroup: groupId, relayGroup, relayLock } = logTopics(config.kafkaTopicPrefix);
  const kafka = new KafkaConnection(kafkaOptionsOf(config, log));
  const refused = metrics.counter(
    'projector_messages_refused_total',
    'Messages in the topic of the log that are foreign, forged, or in the wrong partition',
  );
  const feed = new KafkaEventFeed({
    kafka,
    messages: new LogMessages(tokenSecret),
    topic,
    groupId,
    published: async () => publishedIn(topic, await kafka.committedMetadata(relayGroup, relayLock)),
    onRefused: (reason) => refused.add({ reason }),
    onInterruption: (error, failures) =>
      log.warn({ err: error, consecutive_failures: failures }, 'kafka: the feed was interrupted'),
  });
  const source = { feed, partitions: new PartitionCheckpoints(redis, readModels) };
  return { source, close: () => kafka.close() };
}
