/** Prompts of agents over HTTP. */
import { once } from 'node:events';
import { connect } from 'node:net';

import { describe, expect, it, vi } from 'vitest';

import { Invocations } from '#libs/features/answering/decide/invocation.read.ts';
import { newId } from '#libs/kernel/ids.ts';
import { EventLoopPace } from '#libs/platform/lifecycle/index.ts';
import { Step } from '#libs/platform/reactors/step.ts';
import { eventually } from '#test/support/eventually.ts';
import { refuses, says } from '#test/support/model-server.ts';
import type { Json } from '#test/support/runs-api.ts';

import {
  PATIENT_MS,
  prompts,
  server,
  api,
  origin,
  newAgent,
  urlOf,
  prompt,
  text,
  interactionsOf,
  held,
  allEvents,
  usePrompts,
} from './prompting.ts';

usePrompts();

describe('a prompt', () => {
  it('is a message in the direct channel of the caller and the agent, answered by a run', async () => {
    const agent = await newAgent();
    server.script(says({ text: ['At ', 'nine.'] }));
    const first = await prompt(agent, { prompt: 'When?' });
    expect(first).toMatchObject({ status: 200, json: { message: 'At nine.' } });
    const { run_id, channel_id: channel } = first.json;
    expect(await api.ended(run_id)).toMatchObject({ status: 'completed', agent_id: agent, channel_id: channel });
    const [message, response] = await interactionsOf(channel);
    expect(message).toMatchObject({
      participant: { type: 'authenticated_user', user_id: api.documents.api.userId },
      content_role: 'user_message',
      invocation_config: { mentions: [{ type: 'agent', id: agent }] },
      agent_read_receipts: [{ agent_id: agent }],
    });
    expect([text(message), text(response)]).toEqual(['When?', 'At nine.']);
    expect(response).toMatchObject({ interaction_id: message.interaction_id, metadata: { run_id } });
    const { json } = await api.call('GET', `/api/v1/channels/${channel}`);
    expect(json.participants.map(({ type }: Json) => type)).toEqual(['authenticated_user', 'agent']);

    const second = await prompt(agent, { prompt: 'And on Sundays?' });
    expect(second.json.channel_id).toBe(channel);
    expect(server.requests.at(-1)?.body.messages.map(({ content }) => content)).toContain('At nine.');
  });

  it('may be empty', async () => {
    server.script(says({ text: ['Hello.'] }));
    expect(await prompt(await newAgent())).toMatchObject({ status: 200, json: { message: 'Hello.' } });
  });

  it('shares the channel with a concurrent one', async () => {
    const agent = await newAgent();
    server.script(says({ text: ['Yes.'] }));
    const answers = await Promise.all(['One?', 'Two?'].map((one) => prompt(agent, { prompt: one })));
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    const [one, other] = answers.map(({ json }) => json);
    expect(other.channel_id).toBe(one.channel_id);
    expect(other.run_id).not.toBe(one.run_id);
  });

  it('is posted in turns of organizations, a few of each at a time, whatever those of another one wait for', async () => {
    server.script(says({ text: ['Yes.'] }));
    const agent = await newAgent();
    const { channel_id: channel } = (await prompt(agent)).json;
    const created = await api.documents.call('POST', '/api/v1/agents', { name: 'Bob' }, {}, api.foreignKey);
    const { store } = api.platform;
    const append = store.append.bind(store);
    const gate = Promise.withResolvers<void>();
    const sizes: number[] = [];
    const spy = vi.spyOn(store, 'append').mockImplementation(async (stream, revision, events) => {
      if (stream === `channel-${channel}`) {
        sizes.push(events.filter(({ type }) => type.startsWith('InteractionPosted')).length);
        await gate.promise;
      }
      return append(stream, revision, events);
    });
    const pace = vi.spyOn(EventLoopPace.prototype, 'wait');
    try {
      const many = Array.from({ length: 24 }, (_, n) => prompt(agent, { prompt: `${n}?` }));
      await eventually(() => expect(sizes).toHaveLength(1));
      const other = await prompt(created.json.id, { prompt: 'And I?' }, {}, api.foreignKey);
      expect(other).toMatchObject({ status: 200, json: { message: 'Yes.' } });
      const all = Promise.all(many);
      gate.resolve();
      // Only organizations that have sent a request within the last second are left time.
      let answers: Awaited<typeof all> | undefined;
      do {
        const asked = api.documents.call('GET', '/api/v1/agents', undefined, {}, api.foreignKey);
        answers = await Promise.race([all, asked.then(() => undefined)]);
      } while (answers === undefined);
      expect(answers.map(({ status }) => status)).toEqual(many.map(() => 200));
      // Those that had to wait leave time to the organization that sends requests as well.
      expect(pace).toHaveBeenCalled();
    } finally {
      pace.mockRestore();
      spy.mockRestore();
    }
    expect(Math.max(...sizes)).toBeLessThanOrEqual(4);
  });

  it('reads the log for its run when that has ended, not while it waits', async () => {
    server.script(says({ text: ['Yes.'] }));
    const agent = await newAgent();
    // Prompts alone read decisions on messages that mention an agent.
    const decisions = vi.spyOn(Invocations.prototype, 'decision');
    const count = 8;
    for (let n = 0; n < count; n += 1) expect((await prompt(agent)).status).toBe(200);
    expect(decisions.mock.calls.length).toBeLessThan(count / 2);
    decisions.mockRestore();
  });

  it('of a service is in a channel of its own', async () => {
    const agent = await newAgent();
    server.script(says({ text: ['Yes.'] }));
    const principal = { type: 'service', id: newId() };
    const { json } = await api.call('POST', '/api/v1/keys', { name: 'bot', scopes: ['read', 'write'], principal });
    const ofService = await prompt(agent, { prompt: 'Ready?' }, {}, json.key);
    expect(ofService).toMatchObject({ status: 200, json: { message: 'Yes.' } });
    expect((await prompt(agent)).json.channel_id).not.toBe(ofService.json.channel_id);
    const sender = { type: 'external_agent', agent_metadata: { service: principal.id } };
    expect((await interactionsOf(ofService.json.channel_id))[0]).toMatchObject({ participant: sender });
  });

  it('begins another channel after the direct one was archived, and brings back an agent that was removed', async () => {
    const agent = await newAgent();
    server.script(says({ text: ['Yes.'] }));
    const { channel_id: first } = (await prompt(agent)).json;
    const participants = `/api/v1/channels/${first}/participants`;
    const joined = (await api.call('GET', participants)).json.items;
    const record = joined.find(({ participant }: Json) => participant.type === 'agent').participant_id;
    expect((await api.call('DELETE', `${participants}/${record}`)).status).toBe(200);
    expect((await prompt(agent)).json).toMatchObject({ message: 'Yes.', channel_id: first });
    await api.call('POST', `/api/v1/channels/${first}/archive`);
    const { message, channel_id: second } = (await prompt(agent)).json;
    expect(message).toBe('Yes.');
    expect(second).not.toBe(first);
    expect((await prompt(agent)).json.channel_id).toBe(second);
  });
});

describe('a prompt that gets no reply', () => {
  it('is 404 in the same bytes for agents that are unknown or of others, and 422 for an id that is none', async () => {
    const missing = await prompt(newId());
    expect(missing.status).toBe(404);
    const foreign = await prompt(await newAgent(), {}, {}, api.foreignKey);
    expect(foreign).toMatchObject({ status: 404, bytes: missing.bytes });
    expect((await prompt('ada')).json.detail).toMatchObject([{ type: 'uuid_parsing', loc: ['path', 'id'] }]);
    expect((await prompt(newId(), { prompt: 'x'.repeat(32_769) })).status).toBe(422);
  });

  it('is 409 from an agent that is deactivated', async () => {
    const agent = await newAgent();
    await api.call('POST', `/api/v1/agents/${agent}/deactivate`);
    expect(await prompt(agent)).toMatchObject({ status: 409, json: { code: 'agent_deactivated' } });
  });

  it('is 502 if the run fails', async () => {
    server.script(refuses(400));
    const failed = await prompt(await newAgent(), { prompt: 'When?' });
    const error = { code: 'run_failed', reason: 'model_refused', detail: expect.stringContaining('could not answer') };
    expect(failed).toMatchObject({ status: 502, json: { ...error, run_id: expect.any(String) } });
    expect(failed.bytes).not.toContain('refused by the test');
    expect(await api.ended(failed.json.run_id)).toMatchObject({ status: 'failed' });
  });

  it('is 409 if the run is cancelled, whose text is kept', async () => {
    const agent = await newAgent();
    const { answer, release } = held(says({ text: ['Too late.'] }));
    const before = server.requests.length;
    server.script(answer);
    const waiting = prompt(agent, { prompt: 'When?' });
    await eventually(() => server.requests.length > before);
    const { id: channel } = (await api.call('GET', '/api/v1/channels?size=1')).json.items[0];
    const [{ run_id }] = (await api.call('GET', `/api/v1/channels/${channel}/invocations`)).json.items;
    expect((await api.call('POST', `/api/v1/runs/${run_id}/cancel`)).status).toBe(200);
    expect(await waiting).toMatchObject({ status: 409, json: { code: 'run_cancelled', run_id, channel_id: channel } });
    release();
  });
});

describe('a prompt to an agent that leaves before a worker decides on it', () => {
  const removed = async (channel: string): Promise<void> => {
    const participants = `/api/v1/channels/${channel}/participants`;
    const joined = (await api.call('GET', participants)).json.items;
    const record = joined.find(({ participant }: Json) => participant.type === 'agent').participant_id;
    expect((await api.call('DELETE', `${participants}/${record}`)).status).toBe(200);
  };
  const leave: Record<string, (channel: string, agent: string) => Promise<unknown>> = {
    not_participant: removed,
    channel_archived: (channel) => api.call('POST', `/api/v1/channels/${channel}/archive`),
    failed: giveUpInvocations,
    inactive: (_channel, agent) => api.call('POST', `/api/v1/agents/${agent}/deactivate`),
  };

  /** As after too many attempts. */
  async function giveUpInvocations(channel: string): Promise<void> {
    const { features, stores } = api.documents.api;
    const reactor = features.reactors.find(({ name }) => name === 'invocations');
    const { platform } = stores;
    for await (const stored of platform.store.readStream(`channel-${channel}`)) {
      if (reactor?.on.some((type) => type === stored.type) !== true) continue;
      const attempt = { failures: Infinity, lastError: null, signal: new AbortController().signal };
      expect(await new Step(reactor, platform, stored).attempt(attempt)).toMatchObject({ kind: 'done' });
    }
  }

  it.each([
    ['failed', 502, { code: 'not_invoked', reason: 'failed' }],
    ['not_participant', 409, { code: 'not_invoked', reason: 'not_participant' }],
    ['channel_archived', 409, { code: 'not_invoked', reason: 'channel_archived' }],
    ['inactive', 409, { code: 'agent_deactivated' }],
  ])('ends: %s', async (reason, status, json) => {
    const agent = await newAgent();
    server.script(says({ text: ['Yes.'] }));
    const { channel_id: channel } = (await prompt(agent)).json;
    const before = (await interactionsOf(channel)).length;
    const { streamed, waiting } = await api.withoutWorker(async () => {
      const both = { streamed: allEvents(agent, { prompt: 'Now?' }), waiting: prompt(agent, { prompt: 'When?' }) };
      await eventually(async () => expect(await interactionsOf(channel)).toHaveLength(before + 2));
      await leave[reason]?.(channel, agent);
      return both;
    });
    expect(await waiting).toMatchObject({ status, json });
    const [answer, close] = (await streamed).slice(-2);
    expect(answer).toMatchObject({ event: 'answer', data: { status: 'failed', message: '', error: { reason } } });
    expect(close?.data.code).toBe(4504);
    const { items } = (await api.call('GET', `/api/v1/channels/${channel}/invocations?invoked=false`)).json;
    const vain = items.filter((one: Json) => one.reason !== 'own_message');
    expect(vain.map((one: Json) => one.reason)).toEqual([reason, reason]);
  });
});

describe('a prompt that is repeated with its Idempotency-Key', () => {
  it('gets the answer of the same run after it has waited for too long', async () => {
    const agent = await newAgent();
    const { answer, release } = held(says({ text: ['At nine.'] }));
    server.script(answer);
    const key = { 'idempotency-key': newId() };
    prompts.timeoutMs = 1;
    const late = await prompt(agent, { prompt: 'When?' }, key);
    prompts.timeoutMs = PATIENT_MS;
    expect(late).toMatchObject({ status: 504, json: { code: 'answer_pending', run_id: expect.any(String) } });
    expect(late.headers['retry-after']).toBe('5');
    release();
    const { run_id } = late.json;
    expect(await prompt(agent, { prompt: 'When?' }, key)).toMatchObject({
      status: 200,
      json: { message: 'At nine.', run_id },
    });
    const again = await prompt(agent, { prompt: 'When?' }, key);
    expect(again).toMatchObject({ json: { run_id }, headers: { 'idempotency-replayed': 'true' } });
    expect(await interactionsOf(again.json.channel_id)).toHaveLength(2);
    expect((await prompt(agent, { prompt: 'Where?' }, key)).status).toBe(422);
  });

  it('gets the answer of the same run after the client was disconnected, which cancels nothing', async () => {
    const agent = await newAgent();
    const { answer, release } = held(says({ text: ['At nine.'] }));
    const before = server.requests.length;
    server.script(answer);
    const key = { 'idempotency-key': newId() };
    const gone = new AbortController();
    const request = fetch(`${origin}${urlOf(agent)}`, {
      method: 'POST',
      headers: { authorization: api.documents.api.rootKey, 'content-type': 'application/json', ...key },
      body: JSON.stringify({ prompt: 'When?' }),
      signal: gone.signal,
    });
    await eventually(() => server.requests.length > before);
    gone.abort();
    await expect(request).rejects.toThrow();
    // Until the gateway has noticed, the key is in flight.
    prompts.timeoutMs = 1;
    await eventually(async () => {
      expect((await prompt(agent, { prompt: 'When?' }, key)).json.code).toBe('answer_pending');
    }).finally(() => {
      prompts.timeoutMs = PATIENT_MS;
      release();
    });
    const { message, channel_id: channel } = (await prompt(agent, { prompt: 'When?' }, key)).json;
    expect(message).toBe('At nine.');
    expect(await interactionsOf(channel)).toHaveLength(2);
  });

  it('does not find its key in flight if the client left while the message was posted', async () => {
    const agent = await newAgent();
    const { answer, release } = held(says({ text: ['At nine.'] }));
    const before = server.requests.length;
    server.script(answer);
    const key = { 'idempotency-key': newId() };
    const { store } = api.platform;
    const [posting, mayPost] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const append = store.append.bind(store);
    const spy = vi.spyOn(store, 'append').mockImplementation(async (...args) => {
      // The channel of the prompt; a worker may append other events.
      if (JSON.stringify(args[2]).includes(agent)) {
        posting.resolve();
        await mayPost.promise;
      }
      return append(...args);
    });
    const client = connect(Number(new URL(origin).port), '127.0.0.1');
    const atServer = once(api.documents.api.app.server, 'connection');
    const body = JSON.stringify({ prompt: 'When?' });
    const head = [
      `POST ${urlOf(agent)} HTTP/1.1`,
      'host: parley',
      `authorization: ${api.documents.api.rootKey}`,
      'content-type: application/json',
      `content-length: ${body.length}`,
      `idempotency-key: ${key['idempotency-key']}`,
    ];
    client.write(`${head.join('\r\n')}\r\n\r\n${body}`);
    const [socket] = await atServer;
    await posting.promise;
    client.destroy();
    await once(socket, 'close');
    spy.mockRestore();
    mayPost.resolve();
    await eventually(() => server.requests.length > before);
    prompts.timeoutMs = 1;
    const repeated = await eventually(async () => {
      const found = await prompt(agent, { prompt: 'When?' }, key);
      expect(found.json.code).toBe('answer_pending');
      return found;
    }).finally(() => {
      prompts.timeoutMs = PATIENT_MS;
      release();
    });
    expect(await api.ended(repeated.json.run_id)).toMatchObject({ status: 'completed' });
  });
});
