/**
 * Kafka: carries the log to other processes. Optional; what needs it is given a connection.
 *
 *     const kafka = new KafkaConnection(kafkaOptionsOf(config, log));
 *     const topics = logTopics(config.kafkaTopicPrefix);
 *     const relay = new Relay({ feed, kafka, messages: new LogMessages(secret), topics, onProblem });
 *     await relay.run(signal);
 *
 * Works with Kafka 3.9 and 4.
 */
export { KafkaConnection } from './connection.ts';
export type { KafkaOptions, TopicSpec } from './connection.ts';
export { kafkaFault } from './kafka-errors.ts';
export { leadInTurns } from './leadership.ts';
export type { LeadershipOptions, Term } from './leadership.ts';
export { logMessageBody, logMessageHeaders, LogMessages, watermarkHeaders } from './log-message.ts';
export type { MessagePlace, PartitionName, Refusal, Watermark } from './log-message.ts';
export { kafkaOptionsOf } from './options.ts';
export { Relay } from './relay.ts';
export type { RelayParts, RelayProgress } from './relay.ts';
export { KafkaEventFeed } from './event-feed.kafka.ts';
export type { KafkaEventFeedParts } from './group-membership.ts';
export { DEFAULT_TOPIC_PREFIX, logTopics } from './topics.ts';
export type { LogTopics } from './topics.ts';
