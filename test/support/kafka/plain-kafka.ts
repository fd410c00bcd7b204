import { Kafka, type KafkaConfig, logLevel } from 'kafkajs';

import { fixTimers } from '#libs/platform/kafka/kafkajs/timer.ts';

/**
 * kafkajs itself, to inspect Kafka independently of the code under test; silent, and without the timers that Node
 * warns of.
 */
export function plainKafka(brokers: readonly string[], options: Omit<KafkaConfig, 'brokers'> = {}): Kafka {
  fixTimers();
  return new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING, ...options });
}
