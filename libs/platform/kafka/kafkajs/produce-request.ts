/**
 * kafkajs 2.2.4 (and 2.3.0-beta.3) allocates and clears more than a dozen small buffers to encode one message, and copies
 * them into each other: half of the processor time of the relay. This module encodes requests that produce messages, the
 * same bytes, in one buffer. kafkajs does everything else: brokers, partitions, requests, and what it does with errors.
 */
import { createRequire } from 'node:module';
import type { Message } from 'kafkajs';
import { KafkaWriter } from './kafka-writer.ts';

/** Messages of one partition. */
interface PartitionData {
  readonly partition: number;
  readonly messages: readonly Message[];
}

interface TopicData {
  readonly topic: string;
  readonly partitions: readonly PartitionData[];
}

/** The arguments that kafkajs passes to its own encoder. */
export interface ProduceParameters {
  readonly acks: number;
  /** Of the broker, in milliseconds. */
  readonly timeout: number;
  /** 0 for none. */
  readonly compression?: number | undefined;
  readonly transactionalId?: string | undefined;
  /** -1 for a producer that is not idempotent. */
  readonly producerId?: unknown;
  readonly topicData: readonly TopicData[];
}

/** An encoded request, as kafkajs reads it. */
interface Encoded {
  readonly buf: Buffer;
  readonly buffer: Buffer;
  size(): number;
}

/** A parsed response: the outcome of each partition's messages. */
interface ProduceResponse {
  readonly topics: readonly {
    readonly topicName: string;
    readonly partitions: readonly { readonly partition: number; readonly errorCode: number }[];
  }[];
}

interface Produce {
  readonly request: { encode(): Promise<Encoded> };
  readonly response: { parse(data: ProduceResponse): Promise<unknown> };
}

/** By version of the protocol. */
interface ProduceDefinition {
  protocol(options: { readonly version: number }): (parameters: ProduceParameters) => Produce;
}

/** The first version with record batches, in which messages have headers; the format is the same up to 8. */
const FIRST_VERSION = 3;
const LAST_VERSION = 7;
const NO_PRODUCER = -1;
/** Version of the format of record batches. */
const MAGIC = 2;

/** 0, or Kafka's code of the error with which a broker refused the message last; undefined while no broker answered. */
export function outcomeOf(message: Message): number | undefined {
  return outcomes.get(message);
}

export function forgetOutcome(message: Message): void {
  outcomes.delete(message);
}

/**
 * kafkajs only throws the first error of a response, and forgets the responses of other brokers then. This notes the
 * outcome of every message, so that the messages that were stored are not sent again.
 */
const outcomes = new WeakMap<Message, number>();

/**
 * Replaces the encoder, and notes the outcome of each message, for all producers of this process. Idempotent. Requests
 * that this module does not encode (with compression, of idempotent producers, with times of messages) are encoded by
 * kafkajs.
 *
 * @throws Error for a version of kafkajs that lacks it
 */
export function replaceProduceEncoder(): void {
  const found: unknown = createRequire(import.meta.url)('kafkajs/src/protocol/requests/produce');
  if (!isDefinition(found)) {
    throw new Error('the requests of kafkajs differ from 2.2.4: check whether its encoder still needs to be replaced');
  }
  if (replaced.has(found)) return;
  replaced.add(found);
  const { protocol } = found;
  found.protocol = ({ version }) => {
    const produce = protocol({ version });
    if (version < FIRST_VERSION || version > LAST_VERSION) return produce;
    return (parameters) => {
      const own = notingOutcomes(produce(parameters), parameters);
      if (!isPlain(parameters)) return own;
      return {
        ...own,
        request: { ...own.request, encode: async () => encodedOf(encodeProduce(parameters, Date.now())) },
      };
    };
  };
}

const replaced = new WeakSet<object>();

function isDefinition(found: unknown): found is ProduceDefinition {
  return typeof found === 'object' && found !== null && 'protocol' in found && typeof found.protocol === 'function';
}

function notingOutcomes(produce: Produce, { topicData }: ProduceParameters): Produce {
  const note = ({ topics }: ProduceResponse): void => {
    for (const { topicName, partitions } of topics) {
      const sent = topicData.find(({ topic }) => topic === topicName)?.partitions ?? [];
      for (const { partition, errorCode } of partitions) {
        const messages = sent.find((one) => one.partition === partition)?.messages ?? [];
        for (const message of messages) outcomes.set(message, errorCode);
      }
    }
  };
  const { response } = produce;
  return {
    ...produce,
    response: {
      ...response,
      parse(data) {
        note(data);
        return response.parse(data);
      },
    },
  };
}

function isPlain({ compression = 0, transactionalId, producerId, topicData }: ProduceParameters): boolean {
  if (compression !== 0 || (transactionalId ?? null) !== null || producerId !== NO_PRODUCER) return false;
  const partitions = topicData.flatMap((topic) => topic.partitions);
  return partitions.every(({ messages }) => messages.every(({ timestamp }) => timestamp === undefined));
}

function encodedOf(bytes: Buffer): Encoded {
  return { buf: bytes, buffer: bytes, size: () => bytes.length };
}

/**
 * A request to produce messages, without the header that all requests have.
 *
 * @param nowMs time of the messages
 */
export function encodeProduce({ acks, timeout, topicData }: ProduceParameters, nowMs: number): Buffer {
  const writer = new KafkaWriter();
  // No transaction.
  writer.int16(-1).int16(acks).int32(timeout).int32(topicData.length);
  for (const { topic, partitions } of topicData) {
    writer.string(topic).int32(partitions.length);
    for (const { partition, messages } of partitions) {
      const sizeAt = writer.int32(partition).length;
      writer.int32(0);
      writeRecordBatch(writer, messages, nowMs);
      writer.uint32At(sizeAt, writer.length - sizeAt - 4);
    }
  }
  return writer.written;
}

function writeRecordBatch(writer: KafkaWriter, messages: readonly Message[], nowMs: number): void {
  const lengthAt = writer.int64(0).length;
  // Length, leader epoch, format, checksum: of these, the checksum covers none.
  const crcAt = writer.int32(0).int32(0).int8(MAGIC).length;
  const start = writer.int32(0).length;
  writer
    .int16(0)
    .int32(messages.length - 1)
    .int64(nowMs)
    .int64(nowMs);
  writer.int64(NO_PRODUCER).int16(0).int32(0).int32(messages.length);
  for (const [index, message] of messages.entries()) writeRecord(writer, message, index);
  writer.uint32At(lengthAt, writer.length - lengthAt - 4);
  writer.uint32At(crcAt, crc32c(writer.written, start, writer.length));
}

function writeRecord(writer: KafkaWriter, { key = null, value, headers = {} }: Message, index: number): void {
  const start = writer.startLength();
  // No attributes; the time is that of the batch.
  writer.int8(0).varint(0).varint(index).varbytes(key).varbytes(value);
  let count = 0;
  for (const name in headers) {
    const values = headers[name];
    count += Array.isArray(values) ? values.length : 1;
  }
  writer.varint(count);
  for (const name in headers) {
    const values = headers[name] ?? null;
    if (!Array.isArray(values)) writer.varbytes(name).varbytes(values);
    else for (const one of values) writer.varbytes(name).varbytes(one);
  }
  writer.endLength(start);
}

/** CRC-32C (Castagnoli), with its bits reversed. */
const POLYNOMIAL = 0x82f63b78;
const BYTES_AT_ONCE = 8;
/** For each byte: its checksum when 0 to 7 zero bytes follow it, in tables of 256. */
const TABLE = tableOf(BYTES_AT_ONCE);

/**
 * The checksum of Kafka's record batches, of `bytes[from..to)`. Eight bytes at a time, which takes a third of the time of a
 * loop over single bytes; zlib computes another polynomial.
 */
function crc32c(bytes: Uint8Array, from: number, to: number): number {
  let crc = -1;
  let at = from;
  for (const last = to - BYTES_AT_ONCE; at <= last; at += BYTES_AT_ONCE) {
    const low = crc ^ (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24));
    crc =
      TABLE[0x700 | (low & 0xff)]! ^
      TABLE[0x600 | ((low >>> 8) & 0xff)]! ^
      TABLE[0x500 | ((low >>> 16) & 0xff)]! ^
      TABLE[0x400 | (low >>> 24)]! ^
      TABLE[0x300 | bytes[at + 4]!]! ^
      TABLE[0x200 | bytes[at + 5]!]! ^
      TABLE[0x100 | bytes[at + 6]!]! ^
      TABLE[bytes[at + 7]!]!;
  }
  for (; at < to; at++) crc = TABLE[(crc ^ bytes[at]!) & 0xff]! ^ (crc >>> 8);
  return (crc ^ -1) >>> 0;
}

function tableOf(rows: number): Int32Array {
  const table = new Int32Array(rows * 256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    table[byte] = crc;
  }
  for (let at = 256; at < table.length; at++) {
    const before = table[at - 256]!;
    table[at] = (before >>> 8) ^ table[before & 0xff]!;
  }
  return table;
}
