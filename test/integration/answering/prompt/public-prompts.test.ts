/** Prompts without an API key, answered from a graph. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import type { TestEventStoreProcess } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import type { TestRedis } from '#test/support/redis.ts';
import { type Json, RunsApi } from '#test/support/runs-api.ts';

const PER_ADDRESS = 8;
/** Changed by tests of the budget. */
const prompts = { timeoutMs: 600_000, publicPerAddress: PER_ADDRESS, publicPerAgent: 1_000 };
let api: RunsApi;
let addresses = 0;

beforeAll(async () => {
  api = await RunsApi.start({ prompts, redis: 'own', keepAliveMs: 10_000 });
});
afterAll(() => api?.stop());

/** An address that no other test uses. */
function newAddress(): string {
  addresses += 1;
  return `192.0.2.${addresses}`;
}

async function newAgent(body: object = {}): Promise<string> {
  const features = { widget_enabled: true };
  return (await api.newAgent({ name: 'Ada', knowledge_graph: api.graph, features, ...body })).id;
}

async function prompt(agent: string, body: object | string = {}, remoteAddress = newAddress()): Promise<Json> {
  const answer = await api.documents.api.app.inject({
    method: 'POST',
    url: `/api/v1/agents/${agent}/public_prompt`,
    remoteAddress,
    headers: { 'content-type': 'application/json' },
    payload: body,
  });
  return { status: answer.statusCode, headers: answer.headers, json: JSON.parse(answer.payload) };
}

/** Again if midnight passed meanwhile, in UTC, where days of budgets end. */
async function withinDay<T>(run: () => Promise<T>): Promise<T> {
  const today = (): number => new Date().getUTCDate();
  for (;;) {
    const day = today();
    const result = await run();
    if (today() === day) return result;
  }
}

async function channelsWith(agent: string): Promise<Json[]> {
  return (await api.call('GET', `/api/v1/channels?agent=${agent}`)).json.items;
}

describe('a prompt without a key', () => {
  it('is answered, and continues the conversation whose id it has', async () => {
    const agent = await newAgent();
    const first = await prompt(agent, { prompt: 'When does the warehouse in Bremen open?' });
    expect(first).toMatchObject({ status: 200, json: { message: expect.stringContaining('opens at nine') } });
    expect(Object.keys(first.json)).toEqual(['message', 'conversation_id']);
    const { conversation_id } = first.json;
    const second = await prompt(agent, { prompt: 'And helmets?', conversation_id });
    expect(second).toMatchObject({ status: 200, json: { conversation_id } });
    const [channel, ...others] = await channelsWith(agent);
    expect(others).toEqual([]);
    expect(channel.participants).toMatchObject([{ type: 'non_authenticated_user' }, { type: 'agent', id: agent }]);
    const { items } = (await api.call('GET', `/api/v1/channels/${channel.id}/interactions?content_role=user_message`))
      .json;
    expect(items.map(({ participant }: Json) => participant.type)).toEqual(Array(2).fill('non_authenticated_user'));
    expect(conversation_id).not.toContain(channel.id);

    await prompt(agent, { prompt: 'Hello' });
    expect(await channelsWith(agent)).toHaveLength(2);
    await api.call('POST', `/api/v1/channels/${channel.id}/archive`);
    const moved = await prompt(agent, { prompt: 'Still there?', conversation_id });
    expect(moved.status).toBe(200);
    expect(moved.json.conversation_id).not.toBe(conversation_id);
  });

  it('reaches no conversation whose id it does not have', async () => {
    const [agent, other] = [await newAgent(), await newAgent()];
    const { conversation_id } = (await prompt(other)).json;
    const [{ id }] = await channelsWith(other);
    for (const given of [conversation_id, id, newId(), 'x', `${conversation_id}A`]) {
      const refused = await prompt(agent, { conversation_id: given });
      expect(refused).toMatchObject({ status: 422, json: { detail: [{ loc: ['body', 'conversation_id'] }] } });
    }
    expect(await channelsWith(agent)).toEqual([]);
  });

  it('is 401 like a route that needs a key, unless the agent is active and has widget_enabled', async () => {
    const off = await newAgent();
    await api.call('POST', `/api/v1/agents/${off}/deactivate`);
    const plain = await newAgent({ features: {} });
    const withoutKey = await api.documents.api.call({
      method: 'POST',
      url: `/api/v1/agents/${plain}/prompt`,
      body: {},
    });
    const { request_id: _id, ...body } = withoutKey.json;
    for (const agent of [plain, off, newId(), 'ada']) {
      for (const sent of [{ prompt: 'Hello' }, { prompt: 7 }, '{']) {
        const refused = await prompt(agent, sent);
        const { request_id: _own, ...json } = refused.json;
        expect({ status: refused.status, ...json }).toEqual({ status: 401, ...body });
        expect(refused.headers['www-authenticate']).toBe(withoutKey.headers['www-authenticate']);
      }
    }
    await api.call('PATCH', `/api/v1/agents/${plain}`, { features: { widget_enabled: true } });
    expect((await prompt(plain, { prompt: 7 })).status).toBe(422);
    expect((await prompt(plain)).status).toBe(200);
  });
});

describe('prompts without a key', () => {
  it('are limited for each address', async () => {
    const agent = await newAgent({ features: {} });
    const address = newAddress();
    const statuses: number[] = [];
    for (let sent = 0; sent < PER_ADDRESS + 2; sent++) statuses.push((await prompt(agent, {}, address)).status);
    expect(statuses).toEqual([...Array(PER_ADDRESS).fill(401), 429, 429]);
    expect((await prompt(agent, {}, address)).headers['retry-after']).toMatch(/^\d+$/);
    expect((await prompt(agent)).status).toBe(401);
  });

  it('are limited for each agent and day, also concurrent ones', async () => {
    prompts.publicPerAgent = 2;
    try {
      const { agent, answers, refused } = await withinDay(async () => {
        const id = await newAgent();
        const first = await Promise.all(Array.from({ length: 5 }, () => prompt(id)));
        return { agent: id, answers: first, refused: await prompt(id) };
      });
      expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 429, 429, 429]);
      expect(refused).toMatchObject({ status: 429, json: { code: 'daily_budget_used' } });
      expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(24 * 60 * 60);
      expect(await channelsWith(agent)).toHaveLength(2);
      expect((await prompt(await newAgent())).status).toBe(200);
    } finally {
      prompts.publicPerAgent = 1_000;
    }
  });
});

describe('prompts while a store is away', () => {
  it('are 503, and answered again when it is back', { timeout: 120_000 }, async () => {
    const agent = await newAgent();
    expect((await prompt(agent)).status).toBe(200);
    const { stores } = api.documents.api;
    // These can be killed: see `beforeAll`.
    const [redis, eventStore] = [stores.redis as TestRedis, stores.eventStore as TestEventStoreProcess];
    for (const store of [redis, eventStore]) {
      await store.kill9();
      // A prompt that is admitted before that is seen would wait for its run.
      if (store === redis) await eventually(() => !stores.platform.redis.isReady);
      await eventually(async () => {
        const answers = [await prompt(agent), await api.call('POST', `/api/v1/agents/${agent}/prompt`, {})];
        for (const answer of answers) {
          expect(answer).toMatchObject({ status: 503, json: { code: 'store_unavailable' } });
          expect(answer.headers['retry-after']).toBeDefined();
        }
      });
      await store.restart();
      const requests = [() => prompt(agent), () => api.call('POST', `/api/v1/agents/${agent}/prompt`, {})];
      for (const request of requests) {
        await eventually(async () => expect((await request()).status).toBe(200));
      }
    }
  });
});
