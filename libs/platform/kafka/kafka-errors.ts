import kafkajs from 'kafkajs';
import { Fault, storeUnavailable } from '#libs/kernel/faults.ts';

// By the module as a whole: Node does not see these among the names that kafkajs, which is CommonJS, exports.
const { KafkaJSConnectionError, KafkaJSError, KafkaJSNumberOfRetriesExceeded, KafkaJSProtocolError } = kafkajs;

/** What kafkajs calls errors that its types do not name as classes with anything of their own. */
const AWAY = new Set([
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

/**
 * Turns what kafkajs throws into what it means: Kafka is away, slow, or between two leaders (a
 * `store_unavailable` fault), or what was asked is wrong or forbidden (the error as it is).
 */
export function kafkaFault(error: unknown): unknown {
  if (error instanceof Fault) return error;
  return isAway(error) ? storeUnavailable('kafka', error) : error;
}

/**
 * Not by `retriable`: kafkajs wraps what it has retried in an error that says `false`, and what it wraps says
 * nothing. So the cause decides.
 */
function isAway(error: unknown): boolean {
  if (!(error instanceof KafkaJSError)) return false;
  if (error instanceof KafkaJSConnectionError || AWAY.has(error.name)) return true;
  if (error instanceof KafkaJSProtocolError && error.retriable) return true;
  const { cause } = error;
  if (cause !== undefined && cause !== error && isAway(cause)) return true;
  // Retries that ran out over what may pass: whatever cannot, kafkajs does not retry.
  return error instanceof KafkaJSNumberOfRetriesExceeded && !(cause instanceof KafkaJSProtocolError);
}

/** Whether the broker that was asked does not know the topic; one that was made just now it may not know yet. */
export function isUnknownTopic(error: unknown): boolean {
  if (!(error instanceof KafkaJSError)) return false;
  if (error instanceof KafkaJSProtocolError && error.type === 'UNKNOWN_TOPIC_OR_PARTITION') return true;
  return error.cause !== undefined && error.cause !== error && isUnknownTopic(error.cause);
}
