/*
 * The contract of the messages that carry the log: CloudEvents 1.0 in binary mode. These names are what other
 * processes read, older and newer ones among them: add to them, never rename or remove.
 */
import { createHmac, createSecretKey, randomUUID, timingSafeEqual } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { IHeaders, KafkaMessage, Message } from 'kafkajs';
import { z } from 'zod';
import { streamRevision } from '#libs/kernel/event.ts';
import type { GlobalPosition } from '#libs/kernel/event.ts';
import { decodePosition, encodePosition } from '#libs/platform/eventstore/index.ts';
import type { StoredEvent } from '#libs/platform/eventstore/index.ts';
import { partitionOf } from './partitioner.ts';

const decimal = z.string().regex(/^(0|[1-9]\d{0,14})$/);

/** Attributes of CloudEvents, and ours (`ce_revision`, `ce_position`, `ce_signature`), as Kafka's headers. */
export const logMessageHeaders = z.object({
  ce_specversion: z.literal('1.0'),
  /** Of the event; the same each time it is sent. */
  ce_id: z.string().min(1),
  ce_source: z.literal('/parley/log'),
  /** With its version: `InteractionPosted.v1`. */
  ce_type: z.string().min(1),
  /** The stream, which is the message's key as well. */
  ce_subject: z.string().min(1),
  /** When the log took it. */
  ce_time: z.iso.datetime(),
  /** Of the event in its stream, from 0, without holes. */
  ce_revision: decimal,
  /** In the log, `commit/prepare`. */
  ce_position: z.string().regex(/^\d{1,20}\/\d{1,20}$/),
  /** HMAC-SHA-256 of all of the above and of the value, in base64url. */
  ce_signature: z.string().min(1),
  'content-type': z.literal('application/json'),
});

/** The value. What `data` and `metadata` hold is up to the type: the stream's own codec checks it. */
export const logMessageBody = z.object({ data: z.unknown(), metadata: z.unknown() });

/** Of a watermark: a message of the relay itself, without a key. Its value is an empty object. */
export const watermarkHeaders = z.object({
  ce_specversion: z.literal('1.0'),
  ce_id: z.string().min(1),
  ce_source: z.literal('/parley/log'),
  ce_type: z.literal('parley.watermark'),
  /** `topic/partition`: it says nothing of any other place, so nobody gains by copying it there. */
  ce_subject: z.string().min(1),
  ce_time: z.iso.datetime(),
  ce_position: logMessageHeaders.shape.ce_position,
  ce_signature: z.string().min(1),
  'content-type': z.literal('application/json'),
});

/** A place in Kafka where messages lie one after another. */
export interface PartitionName {
  readonly topic: string;
  readonly partition: number;
}

/** Where a message was found. */
export interface MessagePlace extends PartitionName {
  /** How many the topic has: they say which one a key belongs to. */
  readonly partitions: number;
}

/** Says that every event up to `watermark` that belongs into its partition lies before it there. */
export interface Watermark {
  readonly watermark: GlobalPosition;
}

/**
 * Why a message is not taken: another product's or a damaged one; one that was not signed with our secret; or one of
 * ours in a partition that it does not belong to, where somebody has copied it.
 */
export type Refusal = 'foreign' | 'forged' | 'misplaced';

/** Between events or watermarks and messages. Whoever knows the secret can write and check them. */
export class LogMessages {
  readonly #key: KeyObject;

  /** @param secret the one that all processes of a Parley share */
  constructor(secret: string) {
    // Derived, so that what is signed for another purpose is never good here.
    const key = createHmac('sha256', secret).update('parley: messages of the log, version 1').digest();
    this.#key = createSecretKey(key);
  }

  /** @throws TypeError for an event without a position, which is none of a feed */
  encode(event: StoredEvent): Message & { readonly value: string } {
    if (event.position === null) throw new TypeError(`${event.stream}@${event.revision} has no position`);
    const value = JSON.stringify({ data: event.data, metadata: event.metadata });
    const headers = {
      ce_specversion: '1.0',
      ce_id: event.id,
      ce_source: '/parley/log',
      ce_type: event.type,
      ce_subject: event.stream,
      ce_time: new Date(event.createdMs).toISOString(),
      ce_revision: String(event.revision),
      ce_position: encodePosition(event.position),
      'content-type': 'application/json',
    };
    return { key: event.stream, value, headers: { ...headers, ce_signature: this.#sign(headers, value) } };
  }

  /** For that partition, and only once Kafka has acknowledged every event up to `position`. */
  encodeWatermark(place: PartitionName, position: GlobalPosition): Message {
    const value = '{}';
    const headers = {
      ce_specversion: '1.0',
      ce_id: randomUUID(),
      ce_source: '/parley/log',
      ce_type: 'parley.watermark',
      ce_subject: subjectOf(place),
      ce_time: new Date().toISOString(),
      ce_position: encodePosition(position),
      'content-type': 'application/json',
    };
    return {
      key: null,
      value,
      partition: place.partition,
      headers: { ...headers, ce_signature: this.#sign(headers, value) },
    };
  }

  /** What a message that lies in `place` says, checked against the contract, the secret and the place. */
  decode(
    { key, value, headers }: Pick<KafkaMessage, 'key' | 'value' | 'headers'>,
    place: MessagePlace,
  ): StoredEvent | Watermark | Refusal {
    const texts = textsOf(headers ?? {});
    if (value === null) return 'foreign';
    const body = value.toString('utf8');
    const mark = watermarkHeaders.safeParse(texts);
    if (mark.success) {
      const { ce_signature: signature, ...signed } = mark.data;
      if (!isSame(signature, this.#sign(signed, body))) return 'forged';
      if (signed.ce_subject !== subjectOf(place)) return 'misplaced';
      return { watermark: decodePosition(signed.ce_position) };
    }
    const parsed = logMessageHeaders.safeParse(texts);
    if (!parsed.success) return 'foreign';
    const { ce_signature: signature, ...signed } = parsed.data;
    if (!isSame(signature, this.#sign(signed, body))) return 'forged';
    // Our own event under another key would come in an order that is not that of its stream.
    if (key?.toString('utf8') !== signed.ce_subject) return 'forged';
    // In another partition it would say that everything before it lies there already.
    if (partitionOf(signed.ce_subject, place.partitions) !== place.partition) return 'misplaced';
    const { data, metadata } = logMessageBody.parse(JSON.parse(body));
    return {
      stream: signed.ce_subject,
      revision: streamRevision(Number(signed.ce_revision)),
      position: decodePosition(signed.ce_position),
      id: signed.ce_id,
      type: signed.ce_type,
      data,
      metadata,
      createdMs: Date.parse(signed.ce_time),
    };
  }

  #sign(texts: Readonly<Record<string, string>>, value: string): string {
    const attributes = Object.keys(texts)
      .toSorted()
      .map((name) => [name, texts[name]]);
    return createHmac('sha256', this.#key)
      .update(JSON.stringify(attributes))
      .update('\n')
      .update(value)
      .digest('base64url');
  }
}

function subjectOf({ topic, partition }: PartitionName): string {
  return `${topic}/${partition}`;
}

/** A header that is there twice, or is no text, is none of ours. */
function textsOf(headers: IHeaders): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => {
      if (typeof value === 'string') return [[name, value]];
      return Buffer.isBuffer(value) ? [[name, value.toString('utf8')]] : [];
    }),
  );
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
