/** Replaced internals of kafkajs: decision 89 lists them, with the reason of each. */
import { requireVersion } from '#libs/platform/lifecycle/index.ts';
import { askForBrokersAlone } from './metadata.ts';
import { replaceProduceEncoder } from './produce-request.ts';
import { fixTimers } from './timer.ts';

export { CLIENT_ID } from './metadata.ts';
export { createPartitioner, partitionOf } from './partitioner.ts';
export { forgetOutcome, outcomeOf } from './produce-request.ts';

/** For all connections of this process. Idempotent. @throws Error for another version of kafkajs */
export function adaptKafkajs(): void {
  requireVersion('kafkajs', '2.2.4');
  fixTimers();
  replaceProduceEncoder();
  askForBrokersAlone();
}
