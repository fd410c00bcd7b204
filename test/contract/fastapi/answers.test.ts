/**
 * Parts of interactions against those of FastAPI, recorded by record.py: optional members are present as null or with
 * their default, for posts and for events that earlier versions stored without them.
 */
import { readFileSync } from 'node:fs';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';

import { interactionId } from '#libs/features/channels/index.ts';
import { publicChannelEvents } from '#libs/features/channels/stream.ts';
import { sequenceOf, streamRevision } from '#libs/kernel/event.ts';
import type { EventToAppend } from '#libs/platform/eventstore/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { logEvent } from '#test/support/log-events.ts';
import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';

const TEXT = { type: 'text', text: 'a' };
const DEFAULTS = { participant: { type: 'external_agent' }, content: [TEXT], invocation_config: null };

const recorded = z
  .array(
    z.object({
      member: z.enum(['participant', 'content', 'invocation_config']),
      given: z.unknown(),
      answered: z.unknown(),
    }),
  )
  .parse(JSON.parse(readFileSync(new URL('fixtures/answers.json', import.meta.url), 'utf8')));

let api: TestApi;
let channel: string;

beforeAll(async () => {
  api = await startTestApi();
  channel = await newChannel();
});
afterAll(() => api.stop());

const call = (method: Call['method'], url: string, body?: object): Promise<Answer> =>
  api.call({ method, url, key: api.rootKey, ...(body && { body }) });

async function newChannel(): Promise<string> {
  return (await call('POST', '/api/v1/channels', { name: 'A channel' })).json.id;
}

function storedBefore({ member, given }: (typeof recorded)[number], index: number): EventToAppend {
  const parts = { ...DEFAULTS, [member]: given };
  const { metadata, ...event } = logEvent(
    {
      participant: parts.participant,
      content: parts.content,
      contentRole: 'agent_response',
      complete: true,
      metadata: null,
      invocationConfig: parts.invocation_config,
      turnId: 'turn',
      spanId: `span-${index}`,
      parentSpanId: null,
      depth: 1,
      organizationApplication: null,
    },
    'InteractionPosted.v1',
  );
  return { ...event, metadata: { ...metadata, organizationId: api.organizationId, at: new Date().toISOString() } };
}

const isUpdate = ({ given }: { readonly given: unknown }): boolean =>
  JSON.stringify(given).startsWith('[{"type":"tool_call_update"');

describe('as FastAPI answers it', () => {
  it.each(recorded)('$member $given', async ({ member, given, answered }) => {
    const role = isUpdate({ given }) ? 'tool_call_update' : 'agent_response';
    const body = { ...DEFAULTS, content_role: role, [member]: given };
    const posted = await call('POST', `/api/v1/channels/${channel}/interactions`, body);
    expect([posted.status, posted.json[member]]).toEqual([200, answered]);
    if (role === 'tool_call_update') return;
    const read = await call('GET', `/api/v1/interactions/${posted.json.id}`);
    expect(read.json).toEqual(posted.json);
  });

  it('for events that were stored without these members: in reads, past reads, and messages in Kafka', async () => {
    const id = await newChannel();
    const { store } = api.stores.platform;
    const cases = recorded.filter((one) => !isUpdate(one));
    await store.append(`channel-${id}`, streamRevision(0), cases.map(storedBefore));
    const revision = streamRevision(cases.length);
    const last = interactionId({ channelId: id, sequence: sequenceOf(revision) });
    await eventually(async () => expect((await call('GET', `/api/v1/interactions/${last}`)).status).toBe(200));
    const shown: unknown[] = [];
    for await (const stored of store.readStream(`channel-${id}`, { from: streamRevision(1) })) {
      const ref = interactionId({ channelId: id, sequence: sequenceOf(stored.revision) });
      const read = await call('GET', `/api/v1/interactions/${ref}`);
      shown.push(read.json[cases[stored.revision - 1]?.member ?? '']);
      expect((await call('GET', `/api/v1/interactions/${ref}?as_of=${sequenceOf(revision)}`)).json).toEqual(read.json);
      expect(JSON.parse(publicChannelEvents.publish(stored, id)?.event.json ?? '')).toEqual(read.json);
    }
    expect(shown).toEqual(cases.map((one) => one.answered));
  });

  it('content that is added to an incomplete interaction, and that completes it', async () => {
    const media = {
      type: 'media',
      meta_data: { media_id: 'm', mime_type: 'a/b', width: 1, height: 1, description: '' },
    };
    const full = {
      ...media,
      media_url: null,
      meta_data: { ...media.meta_data, source_url: null, name: null, resource_type: null, format: null, preview: null },
    };
    const { json } = await call('POST', `/api/v1/channels/${channel}/interactions`, { content: [], complete: false });
    const added = await call('POST', `/api/v1/interactions/${json.id}/content`, { content: [media] });
    expect(added.json.content).toEqual([full]);
    const ended = await call('POST', `/api/v1/interactions/${json.id}/complete`, { content: [TEXT, media] });
    expect(ended.json.content).toEqual([TEXT, full]);
    expect((await call('GET', `/api/v1/interactions/${json.id}`)).json).toEqual(ended.json);
  });
});
