/**
 * Agents with Claude and Gemini behind a real LiteLLM proxy: its translation, and the strict APIs behind it, check each
 * request of Parley. Needs Python: `npm run test:model-endpoints`.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { type LiteLlm, startLiteLlm } from '#test/support/endpoints/litellm.ts';
import { startUpstreams, type Upstreams } from '#test/support/endpoints/upstreams.ts';
import { eventually } from '#test/support/eventually.ts';
import { type Asked, type Json, RunsApi } from '#test/support/runs-api.ts';

/** The first start of the proxy installs it. */
const INSTALL_MS = 900_000;
const PATIENT_MS = 160_000;
const ANSWER = 'It opens at nine.';

let upstreams: Upstreams;
let proxy: LiteLlm;
let api: RunsApi;

beforeAll(async () => {
  upstreams = await startUpstreams();
  const origin = `http://127.0.0.1:${upstreams.port}`;
  proxy = await startLiteLlm({
    claude: { model: 'anthropic/claude-sonnet-4-5', api_base: origin, api_key: 'none' },
    gemini: { model: 'gemini/gemini-3-pro-preview', api_base: `${origin}/v1beta`, api_key: 'none' },
  });
  const limits = { totalMs: PATIENT_MS, firstPartMs: PATIENT_MS, idleMs: PATIENT_MS };
  api = await RunsApi.start({
    model: { baseUrl: proxy.baseUrl, apiKey: proxy.apiKey, name: 'claude', limits },
    relevance: { timeoutMs: PATIENT_MS },
  });
}, INSTALL_MS);
beforeEach(() => {
  upstreams.refusals.length = 0;
});
afterAll(async () => {
  await api?.stop();
  await proxy?.stop();
  await upstreams?.stop();
});

/** What the APIs behind the proxy have refused. */
const refused = (): (string | null)[] => upstreams.refusals.filter((refusal) => refusal !== null);

async function answered(question: string, options: Partial<Asked> & { readonly model: string }): Promise<Json> {
  const { model, invocationConfig, ...more } = options;
  const asked = await api.ask(question, { ...more, invocationConfig: { model_name: model, ...invocationConfig } });
  const { status, error } = await api.ended(asked.runId);
  expect([status, error]).toEqual(['completed', null]);
  const { content } = await api.response(asked);
  return content.map(({ text }: Json) => text).join('');
}

describe.each(['claude', 'gemini'])('%s behind LiteLLM', (model) => {
  it('answers', async () => {
    expect(await answered('When does it open?', { model })).toBe(ANSWER);
    expect(upstreams.refusals).toEqual([null]);
  });

  it('answers after two rounds of tools, each with two calls', async () => {
    expect(await answered('When does it open? (2 rounds)', { model })).toBe(ANSWER);
    expect(upstreams.refusals).toEqual([null, null, null]);
  });

  it('answers after it has thought in each round', async () => {
    const invocationConfig = { reasoning_effort: 'high' };
    expect(await answered('When does it open? (2 rounds)', { model, invocationConfig })).toBe(ANSWER);
    // Parley learns once that Claude thinks at one temperature only.
    const learned = model === 'claude' ? ['`temperature` may only be set to 1 when thinking is enabled.'] : [];
    expect([refused(), upstreams.refusals.length]).toEqual([learned, 3 + learned.length]);
  });

  it('answers in the last call', async () => {
    expect(await answered('When does it open? (99 rounds)', { model })).toBe(ANSWER);
    expect([refused(), upstreams.refusals.length]).toEqual([[], 8]);
  });

  it('answers where the agent spoke first, and users wrote several messages', async () => {
    const channelId = await api.newChannel();
    const participant = { type: 'agent', agent_id: api.agentId };
    const greeting = { content: [{ type: 'text', text: 'Welcome.' }], content_role: 'agent_response', participant };
    expect((await api.call('POST', `/api/v1/channels/${channelId}/interactions`, greeting)).status).toBe(200);
    await api.post(channelId, 'Hello.');
    expect(await answered('When does it open? (1 round)', { model, channelId })).toBe(ANSWER);
    expect(refused()).toEqual([]);
  });

  it('says whether a message concerns an agent', async () => {
    const { id } = await api.newAgent({ name: 'Ada', model_name: model });
    const body = { name: 'Ask', participants: [{ type: 'agent', id }], agent_invocation_behavior: 'intelligent' };
    const channel = (await api.call('POST', '/api/v1/channels', body)).json.id;
    const message = await api.post(channel, 'Answer yes (relevance)');
    const decision = await eventually(
      async () => {
        const url = `/api/v1/channels/${channel}/invocations?message_id=${message.id}`;
        const { items } = (await api.call('GET', url)).json;
        expect(items).toHaveLength(1);
        return items[0];
      },
      { timeoutMs: PATIENT_MS },
    );
    expect(decision).toMatchObject({ reason: 'relevant', relevance: { decided_by: 'model', failure: null } });
    await api.ended(decision.run_id);
  });
});
