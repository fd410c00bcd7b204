import specification from '@asyncapi/specs/schemas/3.0.0.json' with { type: 'json' };
import { Ajv } from 'ajv';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';

import { systemClock } from '#libs/kernel/clock.ts';
import { newId } from '#libs/kernel/ids.ts';
import { clientFrame, PROTOCOL, serverFrame } from '#libs/features/realtime/index.ts';
import type { ChannelSequence } from '#libs/kernel/event.ts';
import { composeFeatures, type Features } from '#services/features.ts';
import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;
let features: Features;
let served: Answer;

beforeAll(async () => {
  api = await startTestApi();
  features = composeFeatures(api.stores.platform);
  served = await api.call({ method: 'GET', url: '/asyncapi.json' });
});
afterAll(() => api.stop());

function call(method: Call['method'], url: string, body?: object): Promise<Answer> {
  return api.call({ method, url, key: api.rootKey, ...(body && { body }) });
}

// The specification contains the draft of JSON Schema by which it is written. Its patterns are those without the flag `u`.
const isValid = new Ajv({ strict: false, validateFormats: false, meta: false, unicodeRegExp: false }).compile(
  specification,
);

/** What breaks the specification, and references without a target. The public parser is asked by `npm run test:generators`. */
function faultsOf(document: string): readonly unknown[] {
  const parsed = JSON.parse(document) as unknown;
  const dangling = [...new Set(Array.from(document.matchAll(/"\$ref":"#\/([^"]*)"/g), ([, path = '']) => path))].filter(
    (path) => targetOf(parsed, path) === undefined,
  );
  return isValid(parsed) ? dangling : [...(isValid.errors ?? []), ...dangling];
}

/** @param path a JSON pointer without its first `/` */
function targetOf(value: unknown, path: string): unknown {
  const names = path.split('/').map((name) => decodeURIComponent(name).replaceAll('~1', '/').replaceAll('~0', '~'));
  return names.reduce((at, name) => (at as Readonly<Record<string, unknown>> | undefined)?.[name], value);
}

const kindsOf = (union: typeof clientFrame | typeof serverFrame): string[] =>
  union.options.map((option) => String([...option.shape.frame.values][0]));

describe('the AsyncAPI document', () => {
  it('is public, and valid', () => {
    expect(served.status).toBe(200);
    expect(served.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(served.json.asyncapi).toBe('3.0.0');
    expect(faultsOf(served.bytes)).toEqual([]);
  });

  it('is found invalid if it is changed', () => {
    const { operations, ...others } = served.json;
    const broken = {
      ...others,
      operations: { ...operations, sendFrames: { ...operations.sendFrames, action: 'shout' } },
    };
    expect(faultsOf(JSON.stringify(broken))).not.toEqual([]);
    const dangling = served.bytes.replaceAll('#/components/schemas/HelloFrame', '#/components/schemas/nowhere');
    expect(faultsOf(dangling)).toEqual(['components/schemas/nowhere']);
  });

  it('contains every frame, every event and every command, by the side that sends it', () => {
    const { operations, components } = served.json;
    const { events, commands, publicEvents } = features.realtime.protocol;
    const named = ({ messages }: { messages: { $ref: string }[] }): string[] =>
      messages.map(({ $ref }) => $ref.slice($ref.lastIndexOf('/') + 1));
    const types = events.map(({ type }) => type);
    const serverFrames = kindsOf(serverFrame).filter((kind) => kind !== 'event');
    expect(named(operations.sendFrames).toSorted()).toEqual([...serverFrames, ...types].toSorted());
    expect(named(operations.streamEvents)).toEqual(types);
    const sent = kindsOf(clientFrame).filter((kind) => kind !== 'command');
    expect(named(operations.receiveFrames).toSorted()).toEqual(sent.toSorted());
    expect(named(operations.receiveCommands)).toEqual(commands.map(({ type }) => type));
    expect(named(operations.receiveCommands.reply)).toEqual(['ack', 'error']);
    // Messages for other teams have separate names: their data differ from those of frames.
    const published = [...publicEvents.map(({ type }) => `kafka.${type}`), 'kafka.unknown'];
    const kafkaNames = operations.publishEvents.messages.map(({ $ref }: { $ref: string }) => $ref.split('/').at(-1));
    expect(kafkaNames).toEqual(published);
    expect(Object.keys(components.messages).toSorted()).toEqual(
      [...new Set([...serverFrames, ...types, ...sent, ...named(operations.receiveCommands), ...published])].toSorted(),
    );
  });

  it('describes the ticket, the subprotocol, and the optional members of each side', () => {
    const { channels, components, servers } = served.json;
    expect(channels.websocket.address).toBe('/api/v1/channels/{id}/websocket');
    expect(channels.websocket.bindings.ws.headers.properties['Sec-WebSocket-Protocol'].description).toContain(PROTOCOL);
    expect(Object.keys(channels.websocket.bindings.ws.query.properties)).toEqual(['ticket']);
    expect(servers.websocket.security.map(({ $ref }: { $ref: string }) => $ref)).toEqual([
      '#/components/securitySchemes/ticketAsSubprotocol',
      '#/components/securitySchemes/ticketInQuery',
    ]);
    const { schemas } = components;
    expect(schemas.ResumeFrame).toMatchObject({ required: ['frame'], additionalProperties: false });
    expect(schemas.ResumeFrame.properties.after).toMatchObject({ type: 'integer', minimum: 0 });
    expect(schemas.HelloFrame.required).toContain('head');
    expect(schemas.InteractionPostCommand.properties.data.$ref).toBe('#/components/schemas/InteractionPostInput');
    expect(schemas.InteractionPostInput.required).toEqual(['content']);
    expect(schemas.InteractionPostedEvent.properties).toMatchObject({
      frame: { const: 'event' },
      type: { const: 'interaction.posted' },
      seq: { type: 'integer', minimum: 1 },
    });
    expect(JSON.stringify(schemas)).not.toContain('#/definitions/');
  });

  it('names its schemas as programs name types, and says by which member alternatives differ', () => {
    const { schemas } = served.json.components;
    expect(Object.keys(schemas).filter((name) => !/^[A-Z][A-Za-z]+$/.test(name))).toEqual([]);
    const unions = JSON.stringify(schemas).match(
      /"(?:oneOf|anyOf)":\[(?:\{"\$ref":"[^"]*"\},?){2,}\](?:,"discriminator":"\w+")?/g,
    );
    expect(unions?.length).toBeGreaterThan(4);
    // The tag of an update of a tool call may be left out.
    expect(unions?.filter((one) => !one.includes('discriminator') && !one.includes('ToolCallTextInput'))).toEqual([]);
    expect(schemas.InteractionContent.discriminator).toBe('type');
    // Generators name the types of enums and constants by their titles, else `AnonymousSchema_51`.
    const untitled = Object.values(schemas).flatMap(
      (schema) => JSON.stringify(schema).match(/:\{[^{}]*"(?:const|enum)":[^{}]*\}/g) ?? [],
    );
    expect(untitled.length).toBeGreaterThan(50);
    expect(untitled.filter((one) => !one.includes('"title":'))).toEqual([]);
  });

  it('describes the topic, the key and the headers for other teams', () => {
    const { channels, components, servers } = served.json;
    expect(channels.kafka).toMatchObject({ address: '{prefix}.events', servers: [{ $ref: '#/servers/kafka' }] });
    expect(servers.kafka.protocol).toBe('kafka');
    const posted = components.messages['kafka.interaction.posted'];
    expect(posted).toMatchObject({
      name: 'parley.interaction.posted',
      bindings: { kafka: { key: { type: 'string' } } },
    });
    expect(components.schemas.MessageHeaders.required).toEqual(
      expect.arrayContaining(['ce_id', 'ce_source', 'ce_specversion', 'ce_type', 'ce_subject', 'ce_sequence']),
    );
  });

  it('is linked from the reference of the HTTP API', async () => {
    const openapi = await api.call({ method: 'GET', url: '/openapi.json' });
    expect(openapi.json.info.description).toContain('/asyncapi.json');
  });
});

describe('a frame of an event', () => {
  it('has the data that the document describes for its type', async () => {
    const { id: channelId } = (await call('POST', '/api/v1/channels', { name: 'A channel' })).json;
    const path = `/api/v1/channels/${channelId}`;
    const content = [{ type: 'text', text: 'x' }];
    const said = (await call('POST', `${path}/interactions`, { content, span_id: 'root' })).json;
    const begun: string[] = [];
    for (let n = 0; n < 2; n++) {
      const body = { content: [], complete: false, participant: { type: 'system' }, parent_span_id: 'root' };
      begun.push((await call('POST', `${path}/interactions`, body)).json.id);
    }
    const at = `/api/v1/interactions/${said.id}`;
    const user = (await call('POST', '/api/v1/users', { display_name: 'Ada' })).json;
    const agent = (await call('POST', '/api/v1/agents', { name: 'Robin' })).json;
    const steps = [
      await call('PATCH', path, { name: 'Another name', meta_data: { a: [1] } }),
      await call('POST', `/api/v1/interactions/${begun[0]}/content`, { content }),
      await call('POST', `/api/v1/interactions/${begun[0]}/complete`, {}),
      await call('POST', `/api/v1/interactions/${begun[1]}/fail`, { reason: 'no more' }),
      await call('PUT', `${at}/reactions/${encodeURIComponent('👍')}`, { agent_id: 'agent', agent_name: 'Robin' }),
      await call('DELETE', `${at}/reactions/${encodeURIComponent('👍')}?agent_id=agent`),
      await call('POST', `${at}/read_receipts`, { agent_id: 'agent' }),
      await call('POST', `${at}/mention_invite_prompt/dismiss`),
      await call('PATCH', at, { content: [{ type: 'text', text: 'y' }] }),
      await call('DELETE', at),
      await call('POST', `${path}/participants`, { type: 'agent', id: agent.id }),
      await call('POST', `${path}/participants`, { type: 'authenticated_user', user_id: user.id }),
    ];
    const { items } = (await call('GET', `${path}/participants`)).json;
    steps.push(await call('DELETE', `${path}/participants/${items.at(-1).participant_id}`));
    const file = { mediaId: newId(), name: 'bill.pdf', hash: null, bytes: 0, interactionId: null };
    const context = {
      commandId: newId(),
      organizationId: api.organizationId,
      actor: { type: 'user', id: api.userId },
      at: systemClock.now(),
    } as const;
    expect(await features.channels.noteDeletedFile(context, channelId, file)).toMatchObject({ ok: true });
    steps.push(await call('POST', `${path}/archive`));
    expect(steps.map(({ status }) => status)).toEqual(steps.map(() => 200));

    const schemas = new Map(features.realtime.protocol.events.map(({ type, data }) => [type, data]));
    const seen = new Set<string>();
    const { log } = features.realtime;
    for await (const page of log.framesAfter(api.organizationId, channelId, 0 as ChannelSequence)) {
      for (const { json } of page) {
        const frame = serverFrame.parse(JSON.parse(json));
        const { type, data } = z.object({ type: z.string(), data: z.unknown() }).parse(frame);
        // A schema drops members that it does not declare.
        expect(schemas.get(type)?.parse(data)).toEqual(data);
        seen.add(type);
      }
    }
    expect([...seen].toSorted()).toEqual([...schemas.keys()].toSorted());
  });
});
