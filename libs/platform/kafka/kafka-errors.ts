import { createRequire } from 'node:module';
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
  return isUnavailable(error) ? storeUnavailable('Kafka', error) : error;
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

/**
 * Whether a broker has answered a request with an error, instead of being unreachable or silent: the answer concerns the
 * topic or the partition, while others may work.
 */
export function isAnswer(error: unknown): boolean {
  if (error instanceof KafkaJSProtocolError) return true;
  return error instanceof Error && error.cause !== undefined && error.cause !== error && isAnswer(error.cause);
}

/** Codes of Kafka's protocol that kafkajs 2.2.4 does not know. */
const UNKNOWN_TO_KAFKAJS: ReadonlyMap<number, string> = new Map([
  [87, 'The broker rejects the record, as a compacted topic rejects one without a key (INVALID_RECORD)'],
  [89, 'A quota of the broker is exceeded (THROTTLING_QUOTA_EXCEEDED)'],
]);

/** The error that a broker has answered with. */
export function errorOfCode(code: number): Error {
  const text = UNKNOWN_TO_KAFKAJS.get(code);
  return text === undefined ? createErrorFromCode(code) : new Error(text);
}

const { createErrorFromCode } = createRequire(import.meta.url)('kafkajs/src/protocol/error') as {
  createErrorFromCode(code: number): Error;
};

/** The error with its causes: "unavailable" alone does not mention an untrusted certificate. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  // kafkajs repeats the message of the cause, without its type.
  if (cause instanceof Error && cause.message === message) return describeError(cause);
  const named = 'type' in error && typeof error.type === 'string' ? `${message} (${error.type})` : message;
  return cause instanceof Error ? `${named}: ${describeError(cause)}` : named;
}
