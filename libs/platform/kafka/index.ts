/**
 * Kafka (optional): carries the log to other processes.
 *
 *     const kafka = new KafkaConnection(kafkaOptionsOf(config, log));
 *     const topics = logTopics(config.kafkaTopicPrefix);
 *     const relay = new Relay({ feed, kafka, messages: new LogMessages(secret), topics, onProblem });
 *     await relay.run(signal);
 *
 * Works with Kafka 3.9 and 4.
 */
export { KafkaConnection, kafkaOptionsOf } from './connection.ts';
export { KafkaEventFeed } from './event-feed.kafka.ts';
export { LogMessages } from './log-message.ts';
export type { MessagePlace, Refusal, Watermark } from './log-message.ts';
export { Relay } from './relay.ts';
export { logTopics } from './topics.ts';
export type { LogTopics } from './topics.ts';
