/*
 * Archiving a channel ends its incomplete interactions, and threads may refer only to existing ones: both are decided
 * on the log.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type ChannelEvent, interactionId } from '#libs/features/channels/index.ts';

import { type ChannelSequence, streamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { readLog } from '#test/support/log-reader.ts';
import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';
import { composeUnapplied } from '#test/support/unapplied-writer.ts';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.stop());

const call = (method: Call['method'], url: string, body?: object, key = api.rootKey): Promise<Answer> =>
  api.call({ method, url, key, ...(body !== undefined && { body }) });
const newChannel = async (body: object = {}, key?: string): Promise<string> =>
  (await call('POST', '/api/v1/channels', { name: 'Lab', ...body }, key)).json.id;
const post = async (channelId: string, body: object = {}, key?: string): Promise<string> =>
  (await call('POST', `/api/v1/channels/${channelId}/interactions`, { content: [], ...body }, key)).json.id;
const archive = (channelId: string): Promise<Answer> => call('POST', `/api/v1/channels/${channelId}/archive`);
const read = async (id: string) => (await call('GET', `/api/v1/interactions/${id}?include_incomplete=true`)).json;
const typesOf = async (channelId: string): Promise<string[]> =>
  (await readLog(api.stores.eventStore.url, `channel-${channelId}`)).map(({ type }) => type);
const context = () => ({
  commandId: newId(),
  organizationId: api.organizationId,
  actor: { type: 'user' as const, id: api.userId },
  at: new Date().toISOString(),
});
const failed = { complete: true, metadata: { failure: 'The channel was archived' } };

describe('archiving a channel', () => {
  it('fails incomplete interactions, and is the last event', async () => {
    const channelId = await newChannel();
    const text = [{ type: 'text', text: 'so far' }];
    const open = [
      await post(channelId, { complete: false, content: text }),
      await post(channelId, { complete: false }),
    ];
    const done = await post(channelId);
    expect((await archive(channelId)).status).toBe(200);
    expect(await read(open[0] ?? '')).toMatchObject({ ...failed, content: text });
    expect(await read(open[1] ?? '')).toMatchObject(failed);
    expect(await read(done)).toMatchObject({ complete: true, metadata: null });
    expect((await typesOf(channelId)).slice(-3)).toEqual([
      'InteractionFailed.v1',
      'InteractionFailed.v1',
      'ChannelArchived.v1',
    ]);
    expect((await archive(channelId)).status).toBe(200);
    expect((await typesOf(channelId)).filter((type) => type === 'ChannelArchived.v1')).toHaveLength(1);
  });

  it('refuses later deltas, content, endings and reactions', async () => {
    const channelId = await newChannel();
    const id = await post(channelId, { complete: false });
    expect((await call('POST', `/api/v1/interactions/${id}/deltas`, { text: 'before' })).status).toBe(200);
    await archive(channelId);
    const steps: [Call['method'], string, object][] = [
      ['POST', 'deltas', { text: 'after' }],
      ['POST', 'content', { content: [{ type: 'text', text: 'after' }] }],
      ['POST', 'complete', {}],
      ['POST', 'fail', {}],
      ['PUT', `reactions/${encodeURIComponent('👍')}`, {}],
    ];
    for (const [method, step, body] of steps) {
      expect(await call(method, `/api/v1/interactions/${id}/${step}`, body)).toMatchObject({ status: 409 });
    }
  });

  it('again ends interactions that an earlier version left open in an archived channel', async () => {
    const channelId = await newChannel();
    const id = await post(channelId, { complete: false });
    const archived: ChannelEvent = { type: 'ChannelArchived.v1', data: {} };
    const { commandId, ...rest } = context();
    const metadata = { ...rest, commandId, $correlationId: commandId, $causationId: commandId };
    const event = { ...archived, id: newId(), revision: streamRevision(2), metadata };
    await api.stores.platform.store.append(`channel-${channelId}`, streamRevision(1), [event]);
    expect((await call('POST', `/api/v1/interactions/${id}/fail`, {})).json.code).toBe('archived');
    for (let n = 0; n < 2; n++) expect((await archive(channelId)).status).toBe(200);
    expect(await read(id)).toMatchObject(failed);
    expect((await typesOf(channelId)).slice(2)).toEqual([
      'ChannelArchived.v1',
      'InteractionFailed.v1',
      'ChannelArchived.v1',
    ]);
  });

  it('refuses new threads below it, and keeps existing ones', async () => {
    const channelId = await newChannel();
    const thread = await newChannel({ parent_channel_id: channelId });
    await archive(channelId);
    const refused = await call('POST', '/api/v1/channels', { name: 'Late', parent_channel_id: channelId });
    expect(refused).toMatchObject({ status: 409, json: { code: 'archived' } });
    expect((await read(await post(thread))).channel_id).toBe(thread);
  });
});

describe('the message that started a thread', () => {
  it('must be an interaction of the parent channel', async () => {
    const channelId = await newChannel();
    const id = await post(channelId);
    const elsewhere = await post(await newChannel());
    const other = await call('POST', '/api/v1/organizations', { name: 'Other' });
    const principal = { type: 'service', id: 'other' };
    const key = { name: 'k', scopes: ['read', 'write'], principal, organization_id: other.json.id };
    const foreignKey = (await call('POST', '/api/v1/keys', key)).json.key;
    const foreign = await post(await newChannel({}, foreignKey), {}, foreignKey);
    const at = (sequence: number): string => interactionId({ channelId, sequence: sequence as ChannelSequence });
    // Sequence 1 is the creation of the channel, and 3 has not happened yet.
    for (const origin of [elsewhere, foreign, 'message-1', at(1), at(3)]) {
      const thread = { name: 'Thread', parent_channel_id: channelId, origin_message_id: origin };
      const { status, json } = await call('POST', '/api/v1/channels', thread);
      expect(status).toBe(422);
      expect(json.detail).toEqual([
        {
          type: 'value_error',
          loc: ['body', 'origin_message_id'],
          msg: 'Value error, the parent channel has no such interaction',
          input: origin,
          ctx: { error: {} },
        },
      ]);
    }
    const thread = { name: 'Thread', parent_channel_id: channelId, origin_message_id: id };
    expect((await call('POST', '/api/v1/channels', thread)).json).toMatchObject({ origin_message_id: id });
  });

  it('and its channel are found in the log while read models lag behind', async () => {
    const channelId = await newChannel();
    const late = await newChannel();
    const startProjector = await api.stopProjector();
    try {
      const { channels } = composeUnapplied(api.stores.platform);
      const posted = await channels.interactions.post(
        context(),
        channelId,
        {
          participant: { type: 'system' },
          content: [],
          contentRole: 'channel_notification',
          complete: true,
          metadata: null,
          invocationConfig: null,
          turnId: null,
          spanId: newId(),
          parentSpanId: null,
          organizationApplication: null,
        },
        { spanIsNew: true },
      );
      expect(posted.ok).toBe(true);
      const origin = interactionId({ channelId, sequence: 2 as ChannelSequence });
      const thread = { name: 'Thread', parent_channel_id: channelId, origin_message_id: origin };
      expect((await call('POST', '/api/v1/channels', thread)).status).toBe(200);
      await channels.archive(context(), late);
      const refused = await call('POST', '/api/v1/channels', { name: 'Late', parent_channel_id: late });
      expect(refused).toMatchObject({ status: 409, json: { code: 'archived' } });
    } finally {
      await startProjector();
    }
  });
});
