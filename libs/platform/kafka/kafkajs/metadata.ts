/**
 * Where kafkajs 2.2.4 (and 2.3.0-beta.3) needs the brokers alone, it asks for all topics of the Kafka cluster, and fails if
 * a partition of any topic has no leader: one topic of another team, whose only broker is away, would keep every relay from
 * starting. This module makes it ask for no topics then.
 */
import { createRequire } from 'node:module';

/** Other clients in this process, as those of the program that runs Parley in its tests, may want all topics. */
export const CLIENT_ID = 'parley';
/** The first version of the protocol that says whether topics are created. */
const FIRST_VERSION = 4;
/** A list of no topics, and that none is created. */
const NO_TOPICS = Buffer.from([0, 0, 0, 0, 0]);

interface Protocol {
  readonly request: { readonly apiVersion: number; encode(): Promise<unknown> };
  readonly response: unknown;
}

interface Broker {
  readonly connectionPool: { readonly clientId: string };
  /** Chooses the version of a request. */
  lookupRequest(...request: readonly unknown[]): (parameters: object) => Protocol;
  metadata(topics?: readonly string[]): Promise<unknown>;
}

const replaced = new WeakSet<object>();

/**
 * Replaces the method, for all connections of this process. Idempotent.
 *
 * @throws Error for a version of kafkajs that lacks it
 */
export function askForBrokersAlone(): void {
  const { prototype } = createRequire(import.meta.url)('kafkajs/src/broker') as { readonly prototype: Broker };
  if (replaced.has(prototype)) return;
  const { metadata } = prototype;
  if (typeof metadata !== 'function') {
    throw new Error('brokers of kafkajs differ from 2.2.4: check whether it still asks for all topics');
  }
  prototype.metadata = function (topics = []) {
    if (topics.length > 0 || this.connectionPool.clientId !== CLIENT_ID) return metadata.call(this, topics);
    const lookupRequest = (...request: readonly unknown[]) => withoutTopics(this.lookupRequest(...request));
    return metadata.call(Object.assign(Object.create(this), { lookupRequest }), topics);
  };
  replaced.add(prototype);
}

/** kafkajs encodes an empty list as none, which asks for all topics. */
function withoutTopics(make: (parameters: object) => Protocol): (parameters: object) => Protocol {
  return (parameters) => {
    const protocol = make(parameters);
    if (protocol.request.apiVersion < FIRST_VERSION) return protocol;
    const encode = async () => ({ buf: NO_TOPICS, buffer: NO_TOPICS, size: () => NO_TOPICS.length });
    return { ...protocol, request: { ...protocol.request, encode } };
  };
}
