/** Kafka 3.9 and 4 (optional): carries the log to other processes. */
export { KafkaConnection, kafkaOptionsOf } from './connection.ts';
export { KafkaEventFeed } from './event-feed.kafka.ts';
export { LogMessages, type MessagePlace, type Refusal, type Watermark } from './log-message.ts';
export type { RefusingPartition } from './publisher.ts';
export { publishedIn } from './relay-checkpoint.ts';
export { Relay } from './relay.ts';
export { logTopics, type LogTopics } from './topics.ts';
