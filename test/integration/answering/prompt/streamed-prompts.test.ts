/** Prompts of agents over HTTP whose answers are streamed. */
import { describe, expect, it, vi } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import { channelTopic } from '#libs/platform/live/index.ts';
import { refuses, says, saysInParts, saysThen } from '#test/support/model-server.ts';

import {
  server,
  api,
  newAgent,
  prompt,
  interactionsOf,
  type ServerEvent,
  eventsOf,
  allEvents,
  shown,
  usePrompts,
} from './prompting.ts';

usePrompts();

describe('a streamed prompt', () => {
  const search = { id: 'a', name: 'search_knowledge_graph', arguments: '{"query":"warehouse Bremen open"}' };

  it('sends the frames of its turn, and ends with the answer', async () => {
    const { id: agent } = await api.newAgent({ name: 'Ada', knowledge_graph: api.graph });
    const { promise: isLive, resolve: goOn } = Promise.withResolvers<void>();
    const said = { reasoning: ['Let me see.'], text: ['Looking. '] };
    server.script(
      saysInParts(said, () => isLive, { toolCalls: [search] }),
      says({ text: ['It opens ', 'at nine.'] }),
    );
    const events: ServerEvent[] = [];
    for await (const event of eventsOf(agent, { prompt: 'When?\u2028In Bremen?' })) {
      events.push(event);
      // Not of the turn.
      if (shown(event) === 'prompt') await api.post(event.data.channel_id, 'An aside');
      // From here on, the stream misses no value.
      if (shown(event) === 'delta' || shown(event) === 'snapshot') goOn();
    }
    expect(events.map(shown)).toContain('ephemeral');
    const { run_id, message_id, interaction_id } = events[0]?.data ?? {};
    const durable = events.filter(({ id, event }) => id !== undefined && event === undefined);
    expect(durable.map(({ data }) => [data.type, data.data.content_role ?? null])).toEqual([
      ['interaction.posted', 'user_message'],
      ['receipt.added', null],
      ['interaction.posted', 'agent_reasoning'],
      ['interaction.posted', 'agent_response'],
      ['interaction.posted', 'tool_call'],
      ['interaction.posted', 'tool_call_result'],
      ['interaction.completed', 'agent_response'],
    ]);
    for (const { data } of durable) expect(data.data.interaction_id).toBe(interaction_id);
    expect(durable[0]?.data.data.id).toBe(message_id);
    const kinds = events.map(shown);
    expect(kinds[0]).toBe('prompt');
    expect(kinds.slice(-2)).toEqual(['answer', 'close']);
    const [answer, close] = events.slice(-2);
    const message = 'Looking. \n\nIt opens at nine.';
    expect(answer?.data).toEqual({ status: 'completed', message, run_id, error: null });
    expect(close?.data.code).toBe(4504);
  });

  it('sends the frames of its turn also where they are lost on their way', async () => {
    const agent = await newAgent();
    server.script(says({ text: ['At nine.'] }));
    const { channel_id: channel } = (await prompt(agent)).json;
    const { topics } = api.platform;
    const subscribe = topics.subscribe.bind(topics);
    const lossy = vi.spyOn(topics, 'subscribe').mockImplementation((topic, listener) => {
      const isLost = topic === channelTopic(api.organizationId, channel);
      return subscribe(topic, isLost ? { ...listener, onMessage: () => undefined } : listener);
    });
    const events = await allEvents(agent, { prompt: 'When?' }).finally(() => lossy.mockRestore());
    expect(events.map(shown).slice(-3)).toEqual(['interaction.completed', 'answer', 'close']);
  });

  it('resumes after any of its events, and posts nothing again', async () => {
    const agent = await newAgent();
    server.script(says({ reasoning: ['Let me see.'], text: ['At nine.'] }));
    const events = await allEvents(agent, { prompt: 'When?' });
    const { channel_id: channel } = events[0]?.data ?? {};
    const durable = events.filter(({ id }) => id !== undefined);
    expect(durable).toHaveLength(6);
    const before = await interactionsOf(channel);
    for (const [index, { id = '' }] of durable.entries()) {
      const resumed = await allEvents(agent, { prompt: 'When?' }, { 'last-event-id': id });
      expect(resumed.filter((one) => one.id !== undefined)).toEqual(durable.slice(index + 1));
      expect(resumed.map(shown).slice(-2)).toEqual(['answer', 'close']);
    }
    expect(await interactionsOf(channel)).toEqual(before);
  });

  it('resumes in the middle of an answer, with the text so far', async () => {
    const agent = await newAgent();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    server.script(
      saysThen({ text: ['It opens '] }, (response) => {
        void released.then(() => {
          const choices = [{ index: 0, delta: { content: 'at nine.' }, finish_reason: 'stop' }];
          response.write(`data: ${JSON.stringify({ id: 'answer', model: 'small', choices })}\n\n`);
          response.end('data: [DONE]\n\n');
        });
      }),
    );
    let last = '';
    for await (const event of eventsOf(agent, { prompt: 'When?' })) {
      last = event.id ?? last;
      if (shown(event) === 'delta' || shown(event) === 'snapshot') break;
    }
    const texts: string[] = [];
    for await (const event of eventsOf(agent, {}, { 'last-event-id': last })) {
      if (shown(event) === 'snapshot') {
        texts.push(event.data.text);
        release();
      }
      if (shown(event) === 'answer') texts.push(event.data.message);
    }
    expect(texts[0]).toBe('It opens ');
    expect(texts.at(-1)).toBe('It opens at nine.');
  });

  it('that is repeated with its Idempotency-Key streams the same run from the start', async () => {
    const agent = await newAgent();
    server.script(says({ text: ['At nine.'] }));
    const key = { 'idempotency-key': newId() };
    const [first, second] = [
      await allEvents(agent, { prompt: 'When?' }, key),
      await allEvents(agent, { prompt: 'When?' }, key),
    ];
    expect(second[0]).toEqual(first[0]);
    expect(second.at(-2)).toEqual(first.at(-2));
    expect(await interactionsOf(first[0]?.data.channel_id)).toHaveLength(2);
    const call = (body: object, headers: object) =>
      api.documents.call('POST', `/api/v1/agents/${agent}/stream_prompt`, body, headers);
    expect((await call({ prompt: 'Where?' }, key)).status).toBe(422);
  });

  it('ends with the error of a run that fails', async () => {
    server.script(refuses(400));
    const events = await allEvents(await newAgent(), { prompt: 'When?' });
    expect(events.map(shown)).toContain('interaction.posted');
    expect(events.at(-3)?.data.data.content_role).toBe('internal_error');
    expect(events.at(-2)?.data).toMatchObject({ status: 'failed', message: '', error: { reason: 'model_refused' } });
  });

  it('is refused like a prompt before it begins, and for events of other prompts', async () => {
    const call = (agent: string, headers = {}, key?: string) =>
      api.documents.call('POST', `/api/v1/agents/${agent}/stream_prompt`, {}, headers, key);
    const agent = await newAgent();
    expect((await call(newId())).status).toBe(404);
    expect((await call(agent, {}, api.foreignKey)).status).toBe(404);
    expect((await call(agent, { accept: 'application/json' })).status).toBe(406);
    server.script(says({ text: ['Yes.'] }));
    const [{ id = '' } = {}] = await allEvents(agent, {});
    const other = await newAgent();
    for (const last of [id, '7', `${'A'.repeat(30)}.3`, id.replace(/\d+$/, '999999')]) {
      const to = last === id ? other : agent;
      expect((await call(to, { 'last-event-id': last })).status).toBe(422);
    }
    const bot = { name: 'bot', scopes: ['read', 'write'], principal: { type: 'service', id: newId() } };
    const { key } = (await api.call('POST', '/api/v1/keys', bot)).json;
    expect((await call(agent, { 'last-event-id': id }, key)).status).toBe(422);
    expect((await call(agent, { 'last-event-id': id }, api.foreignKey)).status).toBe(404);
    await api.call('POST', `/api/v1/agents/${agent}/deactivate`);
    expect(await call(agent)).toMatchObject({ status: 409, json: { code: 'agent_deactivated' } });
    expect((await allEvents(agent, {}, { 'last-event-id': id })).at(-2)?.data.message).toBe('Yes.');
  });
});
