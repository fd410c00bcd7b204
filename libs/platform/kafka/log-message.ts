/*
 * WARNING: the contract of the messages that carry the log: CloudEvents 1.0 in binary mode. Other processes read these
 * names, also older and newer ones: add to them, never rename or remove.
 */
import { createHmac, createSecretKey, randomUUID, timingSafeEqual, type KeyObject } from 'node:crypto';
import type { IHeaders, KafkaMessage, Message } from 'kafkajs';
import { z } from 'zod';
import { streamRevision, type GlobalPosition } from '#libs/kernel/event.ts';
import {
  decodePosition,
  encodePosition,
  withoutForeignContent,
  type StoredEvent,
} from '#libs/platform/eventstore/index.ts';
import { partitionOf } from './kafkajs/index.ts';

/** The headers of an event: attributes of CloudEvents, and `ce_revision`, `ce_position`, `ce_signature`. */
const eventHeaders = z.object({
  ce_specversion: z.literal('1.0'),
  /** Id of the event; the same in repeated messages. */
  ce_id: z.string().min(1),
  ce_source: z.literal('/parley/log'),
  /** With its version: `InteractionPosted.v1`. */
  ce_type: z.string().min(1),
  /** The stream, which is also the key of the message. */
  ce_subject: z.string().min(1),
  /** When the log stored the event. */
  ce_time: z.iso.datetime(),
  /** Of the event in its stream, from 0; without those of foreign events, contiguous. */
  ce_revision: z.string().regex(/^(0|[1-9]\d{0,14})$/),
  /** In the log, `commit/prepare`. */
  ce_position: z.string().regex(/^\d{1,20}\/\d{1,20}$/),
  /** HMAC-SHA-256 of all other headers of this schema and of the value, in base64url. */
  ce_signature: z.string().min(1),
  'content-type': z.literal('application/json'),
});

/** The value. The codec of the stream checks `data` and `metadata`. */
const eventBody = z.object({ data: z.unknown(), metadata: z.unknown() });

/**
 * The headers of a watermark: a message of the relay itself, without a key and with an empty object as its value.
 * `ce_subject` is `topic/partition`, so that a copy in another partition is refused.
 */
const watermarkHeaders = eventHeaders.omit({ ce_revision: true }).extend({ ce_type: z.literal('parley.watermark') });

type SignedHeaders = Readonly<Record<string, string>> & { readonly ce_signature: string };

/** Where a message is stored. */
export interface MessagePlace {
  readonly topic: string;
  readonly partition: number;
  /** Partition count of the topic, which determines the partition of a key. */
  readonly partitions: number;
}

/** Every event up to `watermark` that belongs to the partition of the message precedes the message. */
export interface Watermark {
  readonly watermark: GlobalPosition;
}

/**
 * Why a message is not accepted: `foreign`: damaged, or of another program; `forged`: not signed with the secret;
 * `misplaced`: a copy in a partition that it does not belong to.
 */
export type Refusal = 'foreign' | 'forged' | 'misplaced';

/** Encodes events and watermarks as signed messages, and decodes them. */
export class LogMessages {
  readonly #key: KeyObject;

  /** @param secret shared by all processes of a deployment */
  constructor(secret: string) {
    // Derived, so that signatures for other purposes are never valid here.
    const key = createHmac('sha256', secret).update('parley: messages of the log, version 1').digest();
    this.#key = createSecretKey(key);
  }

  /** @throws TypeError for an event without a position, which no feed delivers */
  encode(event: StoredEvent): Message & { readonly value: string } {
    if (event.position === null) throw new TypeError(`${event.stream}@${event.revision} has no position`);
    const value = JSON.stringify({ data: event.data, metadata: event.metadata });
    const headers = this.#signed(value, {
      ce_specversion: '1.0',
      ce_id: event.id,
      ce_source: '/parley/log',
      ce_type: event.type,
      ce_subject: event.stream,
      ce_time: new Date(event.createdMs).toISOString(),
      ce_revision: String(event.revision),
      ce_position: encodePosition(event.position),
      'content-type': 'application/json',
    });
    return { key: event.stream, value, headers };
  }

  /** @param position up to which Kafka has acknowledged all events */
  encodeWatermark(place: Omit<MessagePlace, 'partitions'>, position: GlobalPosition): Message {
    const value = '{}';
    const headers = this.#signed(value, {
      ce_specversion: '1.0',
      ce_id: randomUUID(),
      ce_source: '/parley/log',
      ce_type: 'parley.watermark',
      ce_subject: `${place.topic}/${place.partition}`,
      ce_time: new Date().toISOString(),
      ce_position: encodePosition(position),
      'content-type': 'application/json',
    });
    return { key: null, value, partition: place.partition, headers };
  }

  /** Decodes a message, and checks it against the contract, the secret and its place. */
  decode(
    { key, value, headers }: Pick<KafkaMessage, 'key' | 'value' | 'headers'>,
    { topic, partition, partitions }: MessagePlace,
  ): StoredEvent | Watermark | Refusal {
    const texts = textsOf(headers ?? {});
    if (value === null) return 'foreign';
    const body = value.toString('utf8');
    const watermark = watermarkHeaders.safeParse(texts);
    if (watermark.success) {
      const { ce_subject: subject, ce_position: position } = watermark.data;
      if (!this.#isSigned(watermark.data, body)) return 'forged';
      return subject === `${topic}/${partition}` ? { watermark: decodePosition(position) } : 'misplaced';
    }
    const event = eventHeaders.safeParse(texts);
    if (!event.success) return 'foreign';
    const { ce_subject: stream, ce_revision: revision, ce_position: position, ce_id: id, ...others } = event.data;
    // Under another key, an event would break the order of its stream.
    if (!this.#isSigned(event.data, body) || key?.toString('utf8') !== stream) return 'forged';
    // In another partition, it would claim that all events before it precede it there.
    if (partitionOf(stream, partitions) !== partition) return 'misplaced';
    // Relays of earlier versions sent the events of other applications as well.
    return withoutForeignContent({
      stream,
      revision: streamRevision(Number(revision)),
      position: decodePosition(position),
      id,
      type: others.ce_type,
      ...eventBody.parse(JSON.parse(body)),
      createdMs: Date.parse(others.ce_time),
    });
  }

  #signed(value: string, headers: Readonly<Record<string, string>>): Record<string, string> {
    return { ...headers, ce_signature: this.#signatureOf(headers, value) };
  }

  #isSigned({ ce_signature: signature, ...headers }: SignedHeaders, value: string): boolean {
    const [given, wanted] = [Buffer.from(signature), Buffer.from(this.#signatureOf(headers, value))];
    return given.length === wanted.length && timingSafeEqual(given, wanted);
  }

  #signatureOf(headers: Readonly<Record<string, string>>, value: string): string {
    const attributes = Object.keys(headers)
      .toSorted()
      .map((name) => [name, headers[name]]);
    return createHmac('sha256', this.#key)
      .update(JSON.stringify(attributes))
      .update('\n')
      .update(value)
      .digest('base64url');
  }
}

/** Without headers that are repeated, or that are no text: Parley writes none. */
function textsOf(headers: IHeaders): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => {
      if (typeof value === 'string') return [[name, value]];
      return Buffer.isBuffer(value) ? [[name, value.toString('utf8')]] : [];
    }),
  );
}
