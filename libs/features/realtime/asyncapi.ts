import { z } from 'zod';

import { JSON_TYPE } from '#libs/platform/http/index.ts';
import type { HttpApp, LiveCommandType } from '#libs/platform/http/index.ts';
import { UNKNOWN_EVENT } from '#libs/platform/live/index.ts';
import type { LiveEventType, PublicEventType } from '#libs/platform/live/index.ts';

import { kafkaParts } from './asyncapi.kafka.ts';
import { ComponentSchemas } from './asyncapi.schemas.ts';
import type { Reference } from './asyncapi.schemas.ts';
import * as frames from './frames.schemas.ts';
import { CLOSE, MAX_CLIENT_FRAME_BYTES, MAX_CLIENT_FRAMES_PER_MINUTE, PROTOCOL, TICKET_PREFIX } from './protocol.ts';

export interface DescribedProtocol {
  readonly events: readonly LiveEventType[];
  readonly commands: readonly LiveCommandType[];
  /** What other teams read from Kafka. */
  readonly publicEvents: readonly PublicEventType[];
}

interface Message {
  readonly name: string;
  readonly title: string;
  readonly summary: string;
  readonly payload: Reference;
}
type Messages = Record<string, Message>;

const WEBSOCKET = '#/channels/websocket';
const EVENTS = '#/channels/events';

/** Server to client, besides the events. */
const TOLD = [
  ['hello', frames.helloFrame],
  ['caught_up', frames.caughtUpFrame],
  ['delta', frames.deltaFrame],
  ['snapshot', frames.snapshotFrame],
  ['ephemeral', frames.ephemeralFrame],
  ['ack', frames.ackFrame],
  ['error', frames.errorFrame],
  ['ping', frames.pingFrame],
  ['pong', frames.pongFrame],
] as const;

/** Client to server, besides the commands. Either side may ask the other for a sign of life. */
const SENT = [['resume', frames.resumeFrame]] as const;
const BOTH = ['ping', 'pong'];

/**
 * The websocket protocol, the event streams and what is in Kafka for other teams as an AsyncAPI 3 document, made of the very schemas by which
 * frames are judged and written. `send` and `receive` are the server's.
 */
export function asyncApiDocument({ events, commands, publicEvents }: DescribedProtocol): object {
  const schemas = new ComponentSchemas();
  const eventMessages = messagesOf(events.map((event) => eventMessage(event, schemas)));
  const told = messagesOf(TOLD.map(([frame, schema]) => frameMessage(frame, schema, schemas, 'received')));
  const sent = messagesOf(SENT.map(([frame, schema]) => frameMessage(frame, schema, schemas, 'sent')));
  const commandMessages = messagesOf(commands.map((command) => commandMessage(command, schemas)));
  const kafka = kafkaParts(publicEvents, schemas);
  const inbound = [...Object.keys(sent), ...BOTH];
  const all = { ...told, ...eventMessages, ...sent, ...commandMessages };
  const refs = (names: readonly string[], channel = WEBSOCKET): Reference[] =>
    names.map((name) => ({ $ref: `${channel}/messages/${name}` }));
  return {
    asyncapi: '3.0.0',
    info: { title: 'Parley realtime', version: '1.0.0', description: DESCRIPTION },
    defaultContentType: 'application/json',
    servers: { ...SERVERS, kafka: kafka.server },
    channels: {
      websocket: websocketChannel(Object.keys(all)),
      events: eventStreamChannel(Object.keys(eventMessages)),
      kafka: kafka.channel,
    },
    operations: {
      tell: {
        action: 'send',
        channel: { $ref: WEBSOCKET },
        summary: 'What the server says',
        messages: refs([...Object.keys(told), ...Object.keys(eventMessages)]),
      },
      hear: {
        action: 'receive',
        channel: { $ref: WEBSOCKET },
        summary: 'What a client says, beginning with `resume`',
        messages: refs(inbound),
      },
      command: {
        action: 'receive',
        channel: { $ref: WEBSOCKET },
        summary: 'What a client asks to be done; answered with the same `id`',
        messages: refs(Object.keys(commandMessages)),
        reply: { channel: { $ref: WEBSOCKET }, messages: refs(['ack', 'error']) },
      },
      stream: {
        action: 'send',
        channel: { $ref: EVENTS },
        summary: 'The events of a channel, without a websocket',
        messages: refs(Object.keys(eventMessages), EVENTS),
      },
      publish: kafka.operation,
    },
    components: { messages: { ...all, ...kafka.messages }, schemas: schemas.all(), securitySchemes: SECURITY_SCHEMES },
  };
}

/** `/asyncapi.json`, written once. */
export function asyncApiRoute(app: HttpApp, protocol: DescribedProtocol): void {
  let document: Buffer | undefined;
  app.get('/asyncapi.json', { config: { public: true }, schema: { hide: true } }, (_request, reply) => {
    document ??= Buffer.from(JSON.stringify(asyncApiDocument(protocol)));
    void reply.type(JSON_TYPE).send(document);
  });
}

function websocketChannel(messages: readonly string[]): object {
  return {
    address: '/api/v1/channels/{id}/websocket',
    title: 'What happens in a channel, and what is asked of it',
    servers: [{ $ref: '#/servers/websocket' }],
    parameters: { id: CHANNEL_ID },
    messages: inComponents(messages),
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
}

function eventStreamChannel(messages: readonly string[]): object {
  return {
    address: '/api/v1/channels/{id}/events',
    title: 'The events of a channel as server-sent events',
    description:
      'The same frames as `data`, their sequence as `id`. `Last-Event-ID`, or `?after=`, is the last sequence seen.',
    servers: [{ $ref: '#/servers/http' }],
    parameters: { id: CHANNEL_ID },
    messages: inComponents(messages),
    bindings: {},
  };
}

function eventMessage({ type, summary, data }: LiveEventType, schemas: ComponentSchemas): Message {
  const schema = frames.eventFrameEnvelope.extend({ type: z.literal(type), data }).describe(summary);
  return { name: type, title: type, summary, payload: schemas.add(`Event.${type}`, schema, 'received') };
}

function commandMessage({ type, summary, data }: LiveCommandType, schemas: ComponentSchemas): Message {
  const schema = frames.commandFrame.extend({ type: z.literal(type), data }).describe(summary);
  return { name: type, title: type, summary, payload: schemas.add(`Command.${type}`, schema, 'sent') };
}

function frameMessage(
  frame: string,
  schema: z.ZodType,
  schemas: ComponentSchemas,
  direction: 'sent' | 'received',
): Message {
  const summary = z.string().parse(schema.meta()?.description);
  return { name: frame, title: frame, summary, payload: schemas.add(`Frame.${frame}`, schema, direction) };
}

function messagesOf(messages: readonly Message[]): Messages {
  return Object.fromEntries(messages.map((message) => [message.name, message]));
}

function inComponents(names: readonly string[]): Record<string, Reference> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/messages/${name}` }]));
}

const CHANNEL_ID = { description: 'Id of the channel' };

const HOST = { host: '{host}', variables: { host: { description: 'Of the gateway', default: 'localhost:8080' } } };

const SERVERS = {
  websocket: {
    ...HOST,
    protocol: 'ws',
    description: 'The port of the gateway; `wss` where it stands behind TLS',
    security: [
      { $ref: '#/components/securitySchemes/ticketAsSubprotocol' },
      { $ref: '#/components/securitySchemes/ticketInQuery' },
    ],
  },
  http: {
    ...HOST,
    protocol: 'http',
    description: 'The same port',
    security: [{ $ref: '#/components/securitySchemes/apiKey' }],
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
  'All events of a channel, from any sequence on, without a gap; and what is being said as it is said.',
  'A client says `resume` first; the server sends the events after that sequence, `caught_up`, and then what happens.',
  `Members that a client does not know are to be passed over; the type \`${UNKNOWN_EVENT}\` is an event that the server does not know.`,
  `A client's frame has at most ${MAX_CLIENT_FRAME_BYTES} bytes, and there are at most ${MAX_CLIENT_FRAMES_PER_MINUTE} a minute.`,
  `Close codes from 4000: connect again and resume; from ${CLOSE.protocol}: do not. ${Object.entries(CLOSE)
    .map(([name, code]) => `${code} ${name}`)
    .join(', ')}.`,
].join('\n\n');
