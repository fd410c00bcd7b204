/**
 * Kafka: carries the log to other processes. Optional; what needs it is given a connection.
 *
 *     const kafka = new KafkaConnection({ brokers: ['127.0.0.1:9092'], log });
 *     const relay = new Relay({ feed, kafka, messages: new LogMessages(secret), topics: LOG_TOPICS, onProblem });
 *     await relay.run(signal);
 *
 * Works with Kafka 3.9 and 4.
 */
export { KafkaConnection } from './connection.ts';
export type { KafkaOptions, TopicSpec } from './connection.ts';
export { KafkaEventFeed } from './event-feed.kafka.ts';
export type { KafkaFeedParts } from './event-feed.kafka.ts';
export { kafkaFault } from './kafka-errors.ts';
export { leadInTurns } from './leadership.ts';
export type { LeadershipOptions, Term } from './leadership.ts';
export { logMessageBody, logMessageHeaders, LogMessages, watermarkHeaders } from './log-message.ts';
export type { PartitionName, Refusal, Watermark } from './log-message.ts';
export { Relay } from './relay.ts';
export type { RelayParts, RelayProgress } from './relay.ts';
export { LOG_TOPICS, logTopics } from './topics.ts';
export type { LogTopics } from './topics.ts';
