import { z } from 'zod';

import { PUBLIC_TYPE_PREFIX, publicMessageHeaders, UNKNOWN_PUBLIC_EVENT } from '#libs/platform/live/index.ts';
import type { PublicEventType } from '#libs/platform/live/index.ts';

import type { ComponentSchemas, Reference } from './asyncapi.schemas.ts';

/** The binding of Kafka as this document uses it. */
const BINDING = '0.5.0';
const CHANNEL = '#/channels/kafka';

const unknown: PublicEventType = {
  type: UNKNOWN_PUBLIC_EVENT,
  summary: 'An event that the relay does not know: one of a newer Parley. It takes its place in the sequence',
  data: z.null(),
};

/** The part of the document that is about what other teams read from Kafka. */
export function kafkaParts(types: readonly PublicEventType[], schemas: ComponentSchemas) {
  const headers = schemas.add('Kafka.headers', publicMessageHeaders, 'received');
  const messages = Object.fromEntries(
    [...types, unknown].map((type) => [`kafka.${type.type}`, messageOf(type, headers, schemas)]),
  );
  return {
    messages,
    server: {
      host: '{host}',
      variables: { host: { description: 'One of `KAFKA_BROKERS`', default: 'localhost:9092' } },
      protocol: 'kafka',
      description: 'Where Parley was given brokers; `kafka-secure` where they are behind TLS',
    },
    channel: {
      address: '{prefix}.events',
      title: 'What happens in all channels, for other teams',
      description:
        'CloudEvents 1.0 in binary mode: attributes are headers (`ce_…`), the value is the data. At least once: the ' +
        'same `ce_id` may come again. The events of a channel lie in one partition, in the order of `ce_sequence`.',
      servers: [{ $ref: '#/servers/kafka' }],
      parameters: { prefix: { description: '`KAFKA_TOPIC_PREFIX`', default: 'parley' } },
      messages: Object.fromEntries(
        Object.keys(messages).map((name) => [name, { $ref: `#/components/messages/${name}` }]),
      ),
      bindings: { kafka: { partitions: 12, bindingVersion: BINDING } },
    },
    operation: {
      action: 'send',
      channel: { $ref: CHANNEL },
      summary: 'What happened in channels, as it comes to lie in the log',
      messages: Object.keys(messages).map((name) => ({ $ref: `${CHANNEL}/messages/${name}` })),
      bindings: { kafka: { bindingVersion: BINDING } },
    },
  };
}

function messageOf({ type, summary, data }: PublicEventType, headers: Reference, schemas: ComponentSchemas) {
  return {
    name: `${PUBLIC_TYPE_PREFIX}${type}`,
    title: type,
    summary,
    contentType: 'application/json',
    headers,
    payload: schemas.add(`Kafka.${type}`, data, 'received'),
    bindings: {
      kafka: {
        key: { type: 'string', description: '`channel-` and the id of the channel' },
        bindingVersion: BINDING,
      },
    },
  };
}
