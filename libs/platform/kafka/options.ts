import type { KafkaConfig } from '#libs/platform/config/index.ts';
import type { LifecycleLog } from '#libs/platform/lifecycle/index.ts';
import type { KafkaOptions } from './connection.ts';

/** The Kafka that a process was told of. */
export function kafkaOptionsOf({ kafkaBrokers, kafkaTls, kafkaSasl }: KafkaConfig, log: LifecycleLog): KafkaOptions {
  return { brokers: kafkaBrokers, tls: kafkaTls, sasl: kafkaSasl, log };
}
