import { z } from 'zod';

import {
  type Direction,
  JsonSchemas,
  type LiveCommandType,
  withDiscriminators,
  withTitles,
  pascalCase,
} from '#libs/platform/http/index.ts';
import {
  type EventDescription,
  PUBLIC_TYPE_PREFIX,
  publicMessageHeaders,
  UNKNOWN_EVENT,
  CLOSE,
} from '#libs/platform/live/index.ts';

import * as frames from './frames.ts';
import { MAX_CLIENT_FRAME_BYTES, MAX_CLIENT_FRAMES_PER_MINUTE, PROTOCOL, TICKET_PREFIX } from './frames.ts';

export interface DescribedProtocol {
  readonly events: readonly EventDescription[];
  readonly commands: readonly LiveCommandType[];
  /** Messages in Kafka for other teams. */
  readonly publicEvents: readonly EventDescription[];
}

interface Reference {
  readonly $ref: string;
}

interface Message {
  readonly name: string;
  readonly title: string;
  readonly summary: string;
  readonly payload: Reference;
}
type Messages = Record<string, Message>;

/** Frames of the server besides events, and of clients besides commands. Both send `ping` and `pong`. */
const SERVER_FRAMES = Object.fromEntries(
  frames.serverFrame.options
    .map((schema) => [schema.shape.frame.value, schema] as const)
    .filter(([name]) => name !== 'event'),
);
const CLIENT_FRAMES = { resume: frames.resumeFrame };
const SHARED_FRAMES = ['ping', 'pong'];

/**
 * The websocket protocol, the event streams and the messages in Kafka for other teams as an AsyncAPI 3 document, made of
 * the schemas that frames are parsed and written by. `send` and `receive` are the server's.
 */
export function asyncApiDocument({ events, commands, publicEvents }: DescribedProtocol): object {
  const schemas = new JsonSchemas('draft-7', 'Input');
  const eventMessages = byName(events.map((event) => eventMessage(event, schemas)));
  const serverMessages = frameMessages(SERVER_FRAMES, schemas, 'received');
  const clientMessages = frameMessages(CLIENT_FRAMES, schemas, 'sent');
  const commandMessages = byName(commands.map((command) => commandMessage(command, schemas)));
  const kafkaMessages = publicMessages(publicEvents, schemas);
  const socketMessages = { ...serverMessages, ...eventMessages, ...clientMessages, ...commandMessages };
  const described = schemas.components();
  return {
    asyncapi: '3.0.0',
    info: { title: 'Parley realtime', version: '1.0.0', description: DESCRIPTION },
    defaultContentType: 'application/json',
    servers: SERVERS,
    channels: {
      websocket: { ...WEBSOCKET, messages: inComponents(socketMessages) },
      events: { ...EVENT_STREAM, messages: inComponents(eventMessages) },
      kafka: { ...KAFKA, messages: inComponents(kafkaMessages) },
    },
    operations: {
      sendFrames: operation('send', 'websocket', 'Frames of the server', { ...serverMessages, ...eventMessages }),
      receiveFrames: operation('receive', 'websocket', 'Frames of a client, starting with `resume`', [
        ...Object.keys(clientMessages),
        ...SHARED_FRAMES,
      ]),
      receiveCommands: {
        ...operation('receive', 'websocket', 'Commands of a client; answered with the same `id`', commandMessages),
        reply: { channel: { $ref: '#/channels/websocket' }, messages: refs('websocket', ['ack', 'error']) },
      },
      streamEvents: operation('send', 'events', 'The events of a channel, without a websocket', eventMessages),
      publishEvents: {
        ...operation('send', 'kafka', 'The events of all channels, as they are committed', kafkaMessages),
        bindings: { kafka: { bindingVersion: KAFKA_BINDING } },
      },
    },
    components: {
      messages: { ...socketMessages, ...kafkaMessages },
      schemas: withDiscriminators(withTitles(described), described, 'name'),
      securitySchemes: SECURITY_SCHEMES,
    },
  };
}

type ChannelName = 'websocket' | 'events' | 'kafka';

function operation(
  action: 'send' | 'receive',
  channel: ChannelName,
  summary: string,
  messages: object | readonly string[],
): object {
  const names = Array.isArray(messages) ? messages : Object.keys(messages);
  return { action, channel: { $ref: `#/channels/${channel}` }, summary, messages: refs(channel, names) };
}

function refs(channel: ChannelName, names: readonly string[]): Reference[] {
  return names.map((name) => ({ $ref: `#/channels/${channel}/messages/${name}` }));
}

function inComponents(messages: object): Record<string, Reference> {
  return Object.fromEntries(Object.keys(messages).map((name) => [name, { $ref: `#/components/messages/${name}` }]));
}

function byName(messages: readonly Message[]): Messages {
  return Object.fromEntries(messages.map((message) => [message.name, message]));
}

/** As types are named in programs: `InteractionPostedEvent` for `interaction.posted`. */
function nameOf(type: string, kind: 'Event' | 'Command' | 'Frame' | 'Message'): string {
  return pascalCase(type) + kind;
}

function eventMessage({ type, summary, data }: EventDescription, schemas: JsonSchemas): Message {
  const schema = frames.eventFrameEnvelope.extend({ type: z.literal(type), data }).describe(summary);
  return { name: type, title: type, summary, payload: schemas.component(nameOf(type, 'Event'), schema, 'received') };
}

function commandMessage({ type, summary, data }: LiveCommandType, schemas: JsonSchemas): Message {
  const schema = frames.commandFrame.extend({ type: z.literal(type), data }).describe(summary);
  return { name: type, title: type, summary, payload: schemas.component(nameOf(type, 'Command'), schema, 'sent') };
}

function frameMessages(of: Readonly<Record<string, z.ZodType>>, schemas: JsonSchemas, direction: Direction): Messages {
  return byName(
    Object.entries(of).map(([frame, schema]) => {
      const summary = z.string().parse(schema.meta()?.description);
      return {
        name: frame,
        title: frame,
        summary,
        payload: schemas.component(nameOf(frame, 'Frame'), schema, direction),
      };
    }),
  );
}

function publicMessages(types: readonly EventDescription[], schemas: JsonSchemas): Record<string, object> {
  const headers = schemas.component('MessageHeaders', publicMessageHeaders, 'received');
  const unknown = {
    type: UNKNOWN_EVENT,
    summary: 'An event of a newer version of Parley, which the relay does not know. Keeps the sequence contiguous',
    data: z.null(),
  };
  const key = { type: 'string', description: '`channel-` and the id of the channel' };
  return Object.fromEntries(
    [...types, unknown].map(({ type, summary, data }) => [
      `kafka.${type}`,
      {
        name: `${PUBLIC_TYPE_PREFIX}${type}`,
        title: type,
        summary,
        contentType: 'application/json',
        headers,
        payload: schemas.component(nameOf(type, 'Message'), data, 'received'),
        bindings: { kafka: { key, bindingVersion: KAFKA_BINDING } },
      },
    ]),
  );
}

const KAFKA_BINDING = '0.5.0';
const CHANNEL_ID = { description: 'Id of the channel' };

const WEBSOCKET = {
  address: '/api/v1/channels/{id}/websocket',
  title: 'The frames of a channel, and commands to it',
  servers: [{ $ref: '#/servers/websocket' }],
  parameters: { id: CHANNEL_ID },
  bindings: {
    ws: {
      method: 'GET',
      headers: {
        type: 'object',
        properties: {
          'Sec-WebSocket-Protocol': {
            type: 'string',
            description: `\`${PROTOCOL}, ${TICKET_PREFIX}<ticket>\`; the server answers \`${PROTOCOL}\` only`,
          },
        },
      },
      query: {
        type: 'object',
        properties: { ticket: { type: 'string', description: 'For clients that cannot choose a subprotocol' } },
      },
      bindingVersion: '0.1.0',
    },
  },
};

const EVENT_STREAM = {
  address: '/api/v1/channels/{id}/events',
  title: 'The events of a channel as server-sent events',
  description:
    '`data` contains the same frames, `id` their sequence. `Last-Event-ID` or `?after=` is the last sequence received.',
  servers: [{ $ref: '#/servers/http' }],
  parameters: { id: CHANNEL_ID },
  bindings: {},
};

const KAFKA = {
  address: '{prefix}.events',
  title: 'The events of all channels, for other teams',
  description:
    'CloudEvents 1.0 in binary mode: attributes are headers (`ce_…`), the value is the data. At least once: the same ' +
    '`ce_id` may be repeated. The events of a channel are in one partition, in the order of `ce_sequence`.',
  servers: [{ $ref: '#/servers/kafka' }],
  parameters: { prefix: { description: '`KAFKA_TOPIC_PREFIX`', default: 'parley' } },
  bindings: { kafka: { partitions: 12, bindingVersion: KAFKA_BINDING } },
};

const HOST = { host: '{host}', variables: { host: { description: 'The gateway', default: 'localhost:8080' } } };

const SERVERS = {
  websocket: {
    ...HOST,
    protocol: 'ws',
    description: 'The port of the gateway; `wss` behind TLS',
    security: [
      { $ref: '#/components/securitySchemes/ticketAsSubprotocol' },
      { $ref: '#/components/securitySchemes/ticketInQuery' },
    ],
  },
  http: {
    ...HOST,
    protocol: 'http',
    description: 'The port of the gateway',
    security: [{ $ref: '#/components/securitySchemes/apiKey' }],
  },
  kafka: {
    host: '{host}',
    variables: { host: { description: 'One of `KAFKA_BROKERS`', default: 'localhost:9092' } },
    protocol: 'kafka',
    description: 'Available if brokers are configured; `kafka-secure` for brokers with TLS',
  },
};

const TICKET =
  'A ticket of `POST /api/v1/channels/{id}/websocket_ticket`: valid for a minute, used once, for one channel';

const SECURITY_SCHEMES = {
  ticketAsSubprotocol: {
    type: 'httpApiKey',
    in: 'header',
    name: 'Sec-WebSocket-Protocol',
    description: `${TICKET}. Sent as the subprotocol \`${TICKET_PREFIX}<ticket>\` beside \`${PROTOCOL}\``,
  },
  ticketInQuery: { type: 'httpApiKey', in: 'query', name: 'ticket', description: TICKET },
  apiKey: {
    type: 'httpApiKey',
    in: 'header',
    name: 'Authorization',
    description: 'An API key: `<key>`, `Bearer <key>` or `Token <key>`',
  },
};

const DESCRIPTION = [
  'All events of a channel, from any sequence on, without a gap; and the text of answers while it is written.',
  'A client sends `resume` first; the server sends the events after that sequence, `caught_up`, and then new events.',
  `Clients must ignore members that they do not know; the type \`${UNKNOWN_EVENT}\` is an event that the server does not know.`,
  `A client's frame has at most ${MAX_CLIENT_FRAME_BYTES} bytes, and there are at most ${MAX_CLIENT_FRAMES_PER_MINUTE} a minute.`,
  `Close codes from 4000: connect again and resume; from ${CLOSE.protocol}: do not. ${Object.entries(CLOSE)
    .map(([name, code]) => `${code} ${name}`)
    .join(', ')}.`,
].join('\n\n');
