/** Responses that are posted while the model starts, because nothing else is expected to precede them. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

import { eventually } from '#test/support/eventually.ts';
import {
  type Answer,
  type ModelServer,
  refuses,
  says,
  saysInParts,
  startModelServer,
} from '#test/support/model-server.ts';
import { type Asked, type Json, RunsApi } from '#test/support/runs-api.ts';

let server: ModelServer;
let api: RunsApi;
let models = 0;

beforeAll(async () => {
  server = await startModelServer();
  const limits = { totalMs: 170_000, firstPartMs: 170_000, idleMs: 170_000, maxAttempts: 1 };
  api = await RunsApi.start({ model: { baseUrl: server.baseUrl, name: 'small', limits } });
});
afterAll(async () => {
  await api?.stop();
  await server?.stop();
});

const text = (one: Json): string => one.content.map((item: Json) => item.text).join('');
const shown = async (asked: Asked): Promise<[string, string][]> =>
  (await api.tree(asked)).map((one) => [one.content_role, text(one)]);

/** An agent with a model of its own, which has answered once. */
async function newAgent(first: Answer = says({ text: ['Yes.'] }), more: object = {}): Promise<string> {
  const agent = await api.newAgent({ name: 'Plain', model_name: `model-${(models += 1)}`, ...more });
  server.script(first);
  await api.ended((await api.ask('Are you there?', { agentId: agent.id })).runId);
  return agent.id;
}

/** An answer that begins when the test says so, and the message that it answers. */
async function askHeld(agentId: string, answer: Answer): Promise<{ asked: Asked; release: () => void }> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const before = server.requests.length;
  server.script(async (response, request) => {
    await promise;
    if (!response.destroyed) await answer(response, request);
  });
  const asked = await api.ask('When?', { agentId });
  await eventually(() => server.requests.length > before);
  return { asked, release: resolve };
}

/** As `askHeld`, once the response is posted: the model has not begun. */
async function askShown(agentId: string, answer: Answer) {
  const held = await askHeld(agentId, answer);
  const open = { complete: false, content: [] };
  await eventually(async () => expect(await api.response(held.asked)).toMatchObject(open));
  return held;
}

describe('a response that nothing is expected to precede', () => {
  it('is posted before the model writes, and completed with what it writes', async () => {
    const agentId = await newAgent();
    const post = vi.spyOn(api.documents.api.features.channels.interactions, 'post');
    const { asked, release } = await askShown(agentId, says({ text: ['At ', 'nine.'] }));
    const { id } = await api.response(asked);
    release();
    expect(await api.ended(asked.runId)).toMatchObject({ status: 'completed', response_id: id });
    expect(await api.tree(asked)).toMatchObject([{ id, complete: true, content: [{ text: 'At nine.' }] }]);
    // Reads show it, so it need not be found in the log by posting it again.
    const posted = post.mock.calls.filter(([, , { metadata }]) => metadata?.['run_id'] === asked.runId);
    expect(posted).toHaveLength(1);
    post.mockRestore();
  });

  it('is appended together with the receipt of the message', async () => {
    const agentId = await newAgent();
    const append = vi.spyOn(api.documents.api.stores.platform.store, 'append');
    const { asked, release } = await askShown(agentId, says({ text: ['At nine.'] }));
    const appended = append.mock.calls.filter(([stream]) => stream === `channel-${asked.channelId}`);
    const types = appended.map(([, , events]) => events.map(({ type }) => type));
    expect(types).toContainEqual(['ReadReceiptRecorded.v1', 'InteractionPosted.v1']);
    append.mockRestore();
    release();
    await api.ended(asked.runId);
  });

  it('fails with the run, and is not posted early again until the model has answered', async () => {
    const agentId = await newAgent();
    const { asked, release } = await askShown(agentId, refuses(400));
    release();
    expect(await api.ended(asked.runId)).toMatchObject({ status: 'failed', error: { reason: 'model_refused' } });
    await eventually(async () => expect(await api.tree(asked)).toHaveLength(2));
    const [response, error] = await api.tree(asked);
    expect(response).toMatchObject({ content_role: 'agent_response', complete: true, content: [] });
    expect(response.metadata.failure).toEqual((await api.run(asked.runId)).error.message);
    expect(error).toMatchObject({ content_role: 'internal_error' });
    const again = await api.ask('And now?', { agentId });
    expect(await api.ended(again.runId)).toMatchObject({ status: 'failed' });
    await eventually(async () => expect(await api.tree(again)).toMatchObject([{ content_role: 'internal_error' }]));
  });

  it('fails when the run is cancelled before the model has written', async () => {
    const { asked, release } = await askShown(await newAgent(), says({ text: ['Too late.'] }));
    await api.call('POST', `/api/v1/runs/${asked.runId}/cancel`);
    const failed = { complete: true, content: [], metadata: { failure: 'the run was cancelled' } };
    await eventually(async () => expect(await api.tree(asked)).toMatchObject([failed]));
    release();
  });

  it('fails when the model writes nothing', async () => {
    const { asked, release } = await askShown(await newAgent(), says({}));
    release();
    expect(await api.ended(asked.runId)).toMatchObject({ status: 'failed', error: { reason: 'model_no_answer' } });
    const failed = { complete: true, content: [], metadata: { failure: 'the answer has no text' } };
    const error = { content_role: 'internal_error', metadata: { reason: 'model_no_answer' } };
    await eventually(async () => expect(await api.tree(asked)).toMatchObject([failed, error]));
  });

  it('ends with the run that finds its channel archived', async () => {
    const { asked, release } = await askShown(await newAgent(), says({ text: ['Too late.'] }));
    expect((await api.call('POST', `/api/v1/channels/${asked.channelId}/archive`)).status).toBe(200);
    release();
    expect(await api.ended(asked.runId)).toMatchObject({ status: 'failed', error: { reason: 'channel_archived' } });
    expect(await api.tree(asked)).toMatchObject([{ complete: true, content: [] }]);
  });

  it('is found by the worker that repeats the step', async () => {
    const agentId = await newAgent();
    server.script(says({ text: ['At nine.'] }));
    const asked = await api.withoutWorker(async () => {
      const one = await api.ask('When?', { agentId });
      await (await api.stepOf(one.runId, 0))?.attempt();
      const step = await api.stepOf(one.runId, 1);
      await step?.diesBeforeItsOutcome();
      expect(await api.tree(one)).toMatchObject([{ content_role: 'agent_response', complete: false }]);
      return one;
    });
    expect(await api.ended(asked.runId)).toMatchObject({ status: 'completed' });
    expect(await shown(asked)).toEqual([['agent_response', 'At nine.']]);
  });
});

describe('reasoning precedes the response', () => {
  const reasons = { reasoning: ['Hm.'], text: ['At nine.'] };
  const inOrder = [
    ['agent_reasoning', 'Hm.'],
    ['agent_response', 'At nine.'],
  ];

  it('of a model that has reasoned before, or whose answers are not known', async () => {
    const agentId = await newAgent(says(reasons));
    // Once it has reasoned, text alone does not show that it reasons no more.
    const answers = [
      [says(reasons), inOrder],
      [says({ text: ['Yes.'] }), [['agent_response', 'Yes.']]],
      [says(reasons), inOrder],
    ] as const;
    for (const [answer, expected] of answers) {
      const { asked, release } = await askHeld(agentId, answer);
      expect(await shown(asked)).toEqual([]);
      release();
      await api.ended(asked.runId);
      expect(await shown(asked)).toEqual(expected);
    }
  });

  it('of a model that is asked to reason', async () => {
    const agentId = await newAgent();
    server.script(says(reasons));
    const asked = await api.ask('When?', { agentId, invocationConfig: { reasoning_effort: 'low' } });
    await api.ended(asked.runId);
    expect(await shown(asked)).toEqual(inOrder);
  });

  it('of an agent with tools, which may call one first', async () => {
    const agentId = await newAgent(says({ text: ['Yes.'] }), { features: { general_web_search: true } });
    server.script(
      says({ toolCalls: [{ id: 'a', name: 'read_web_page', arguments: '{"url":"http://127.0.0.1:1/"}' }] }),
      says({ text: ['No.'] }),
    );
    const asked = await api.ask('When?', { agentId });
    await api.ended(asked.runId);
    expect((await shown(asked)).map(([role]) => role)).toEqual(['tool_call', 'tool_call_result', 'agent_response']);
  });

  it('except the first time, of a model that has never reasoned', async () => {
    const { asked, release } = await askShown(
      await newAgent(),
      saysInParts({ reasoning: ['Hm.'] }, () => Promise.resolve(), { text: ['At nine.'] }),
    );
    release();
    await api.ended(asked.runId);
    expect(await shown(asked)).toEqual(inOrder.toReversed());
  });
});
