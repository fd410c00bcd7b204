import { Kafka, logLevel } from 'kafkajs';
import type { KafkaConfig } from 'kafkajs';

import { mendTimers } from '#libs/platform/kafka/kafkajs-timer.ts';

/** kafkajs itself, to look at Kafka past what is tested; silent, and without the timers that Node warns of. */
export function plainKafka(brokers: readonly string[], options: Omit<KafkaConfig, 'brokers'> = {}): Kafka {
  mendTimers();
  return new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING, ...options });
}
