import kafkajs from 'kafkajs';
import { Fault, storeUnavailable } from '#libs/kernel/faults.ts';

// Node does not recognize these among the named exports of kafkajs, which is CommonJS.
const { KafkaJSConnectionError, KafkaJSError, KafkaJSNumberOfRetriesExceeded, KafkaJSProtocolError } = kafkajs;

/** The names of further errors that mean that Kafka is unavailable. */
const UNAVAILABLE = new Set([
  'KafkaJSBrokerNotFound',
  'KafkaJSClusterMetadataNotLoaded',
  'KafkaJSConnectionClosedError',
  'KafkaJSGroupCoordinatorNotFound',
  'KafkaJSLockTimeout',
  'KafkaJSMetadataNotLoaded',
  'KafkaJSNoBrokerAvailableError',
  'KafkaJSRequestTimeoutError',
  'KafkaJSTimeout',
]);

/** A `store_unavailable` fault if Kafka is unavailable, slow or electing a leader; else the error itself. */
export function kafkaFault(error: unknown): unknown {
  if (error instanceof Fault) return error;
  return isUnavailable(error) ? storeUnavailable('kafka', error) : error;
}

/** Decides by the cause: kafkajs wraps errors that it has retried in one with `retriable: false`. */
function isUnavailable(error: unknown): boolean {
  if (!(error instanceof KafkaJSError)) return false;
  if (error instanceof KafkaJSConnectionError || UNAVAILABLE.has(error.name)) return true;
  if (error instanceof KafkaJSProtocolError && error.retriable) return true;
  const { cause } = error;
  if (cause !== undefined && cause !== error && isUnavailable(cause)) return true;
  // kafkajs retries only temporary errors.
  return error instanceof KafkaJSNumberOfRetriesExceeded && !(cause instanceof KafkaJSProtocolError);
}

/** Whether the broker does not know the topic, which may have been created a moment ago. */
export function isUnknownTopic(error: unknown): boolean {
  if (!(error instanceof KafkaJSError)) return false;
  if (error instanceof KafkaJSProtocolError && error.type === 'UNKNOWN_TOPIC_OR_PARTITION') return true;
  return error.cause !== undefined && error.cause !== error && isUnknownTopic(error.cause);
}
