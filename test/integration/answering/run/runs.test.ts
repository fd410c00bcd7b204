/** Runs on all stores, with the extractive default: their trees, their ends, and workers that die. */
import { once } from 'node:events';

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import { parseConfig } from '#libs/platform/config/index.ts';
import type { RunningRole } from '#libs/platform/lifecycle/index.ts';
import { start as startRealtime } from '#services/realtime/role.ts';
import { eventually } from '#test/support/eventually.ts';
import { subscribeToTopic } from '#test/support/realtime/live-topic.ts';
import { openSocket } from '#test/support/realtime/subscriber.ts';
import { type Json, RunsApi } from '#test/support/runs-api.ts';

let api: RunsApi;

beforeAll(async () => {
  api = await RunsApi.start();
});
afterAll(async () => {
  await api?.stop();
});

const HOURS = 'The warehouse in Bremen opens at nine and closes at five.';

describe('a run', () => {
  it('answers from the graph with sources, in a tree below the message', async () => {
    const channelId = await api.newChannel();
    const topic = await subscribeToTopic(api.platform, api.organizationId, channelId);
    const asked = await api.ask('When does the warehouse in Bremen open?', { channelId });
    const run = await api.ended(asked.runId);
    expect(run).toMatchObject({
      status: 'completed',
      error: null,
      agent_id: api.agentId,
      message_id: asked.message.id,
      interaction_id: asked.message.interaction_id,
      model: { kind: 'extractive', name: 'extractive' },
      cost: 0,
    });
    expect(run.steps).toMatchObject([
      { step: 1, kind: 'model', status: 'tool_calls' },
      { step: 2, kind: 'tool', tool_name: 'search_knowledge_graph', status: 'success' },
      { step: 3, kind: 'model', status: 'stop' },
    ]);
    expect(run.duration_ms).toBeGreaterThanOrEqual(0);

    const tree = await api.tree(asked);
    expect(tree.map(({ content_role }) => content_role)).toEqual([
      'agent_reasoning',
      'tool_call',
      'tool_call_result',
      'agent_response',
    ]);
    const [reasoning, call, result, response] = tree;
    for (const one of [reasoning, call, response]) expect(one.parent_span_id).toBe(asked.message.span_id);
    expect(result.parent_span_id).toBe(call.span_id);
    expect(call.content).toMatchObject([
      { type: 'tool_call', tool_name: 'search_knowledge_graph', tool_args: { query: asked.text } },
    ]);
    expect(result.content).toMatchObject([
      { tool_call_id: call.content[0].tool_call_id, status: 'success', tool_result: { quotes: [{ text: HOURS }] } },
    ]);
    expect(response).toMatchObject({
      id: run.response_id,
      complete: true,
      participant: { type: 'agent', agent_id: api.agentId },
      metadata: { run_id: run.id, model: { kind: 'extractive' }, sources: [{ name: 'Warehouse handbook' }] },
    });
    expect(response.content[0].text).toContain(`- ${HOURS} [1]`);
    expect(response.content[0].text).toContain('no language model wrote this');

    const message = (await api.call('GET', `/api/v1/interactions/${asked.message.id}`)).json;
    expect(message.agent_read_receipts).toMatchObject([{ agent_id: api.agentId }]);
    const frames = (await topic.take()).map(({ frame }) => frame as Json);
    const text = frames.filter(({ frame }) => frame === 'delta').map((one) => one.text);
    expect(text.join('')).toBe(response.content[0].text);
    const ephemeral = frames.filter(({ frame }) => frame === 'ephemeral');
    // The result ends the updates.
    expect(ephemeral.at(-1)).toMatchObject({ data: null, ttl_ms: 0 });
    expect(ephemeral.slice(0, -1).map(({ data }) => data.content[0].update.text)).toEqual([
      'Searching the knowledge graph for “When does the warehouse in Bremen open?”',
      'Found one passage',
    ]);
    topic.stop();
  });

  it('says plainly that it has found nothing', async () => {
    const asked = await api.ask('Is there a zeppelin?');
    await api.ended(asked.runId);
    expect((await api.response(asked)).content[0].text).toBe(
      'The knowledge graph of this agent holds nothing on this message.',
    );
  });

  it('answers without a graph that it has none to search', async () => {
    const { id } = await api.newAgent({ name: 'Blank' });
    const asked = await api.ask('When does it open?', { agentId: id });
    expect(await api.ended(asked.runId)).toMatchObject({ status: 'completed', steps: [{ kind: 'model' }] });
    expect((await api.response(asked)).content[0].text).toMatch(/has no knowledge graph/);
  });

  it('ends with an internal error in the channel, when it fails', async () => {
    const { id } = await api.newAgent({ name: 'Gone' });
    await api.call('POST', `/api/v1/agents/${id}/deactivate`);
    const asked = await api.ask('Are you there?', { agentId: id });
    const run = await api.ended(asked.runId);
    expect(run).toMatchObject({ status: 'failed', error: { reason: 'agent_gone' }, response_id: null });
    await eventually(async () => expect(await api.tree(asked)).toHaveLength(1));
    const [error] = await api.tree(asked);
    expect(error).toMatchObject({ content_role: 'internal_error', metadata: { run_id: run.id, reason: 'agent_gone' } });
  });

  it('of a channel that is archived fails without a trace in it', async () => {
    const asked = await api.withoutWorker(async () => {
      const one = await api.ask('When does the warehouse open?');
      await api.call('POST', `/api/v1/channels/${one.channelId}/archive`);
      return one;
    });
    expect(await api.ended(asked.runId)).toMatchObject({ status: 'failed', error: { reason: 'channel_archived' } });
    await eventually(async () => expect(await api.types(asked.runId)).toContain('RunEndShown'));
    expect(await api.tree(asked)).toEqual([]);
  });

  it('is requested once, however often the request is repeated', async () => {
    const asked = await api.ask('When does the warehouse in Bremen open?');
    await api.request(asked);
    await api.ended(asked.runId);
    await api.request(asked);
    expect((await api.types(asked.runId)).filter((type) => type === 'RunRequested')).toHaveLength(1);
    expect(await api.tree(asked)).toHaveLength(4);
  });
});

describe('the routes of runs', () => {
  it('cancel a run once; it stays cancelled', async () => {
    const asked = await api.withoutWorker(async () => {
      const one = await api.ask('When does the warehouse in Bremen open?');
      const cancelled = await api.call('POST', `/api/v1/runs/${one.runId}/cancel`);
      expect(cancelled).toMatchObject({ status: 200, json: { status: 'cancelled', steps: [] } });
      expect((await api.call('POST', `/api/v1/runs/${one.runId}/cancel`)).json).toMatchObject({ status: 'cancelled' });
      return one;
    });
    await eventually(async () =>
      expect(await api.types(asked.runId)).toEqual(['RunRequested', 'RunCancelled', 'RunEndShown']),
    );
    // It had not begun, and ends in the channel as every run does.
    const metadata = { run_id: asked.runId, failure: 'the run was cancelled' };
    const end = { content_role: 'agent_response', complete: true, content: [], metadata };
    expect(await api.tree(asked)).toMatchObject([end]);
  });

  it('show a run as of a sequence, as it was then', async () => {
    const { runId } = await api.ask('What is known of Ada?');
    await api.ended(runId);
    const states = await Promise.all(['0', '1', '2'].map((at) => api.call('GET', `/api/v1/runs/${runId}?as_of=${at}`)));
    expect(states.map(({ status, json }) => [status, json.status, json.steps?.length])).toEqual([
      [404, undefined, undefined],
      [200, 'queued', 0],
      [200, 'running', 0],
    ]);
  });

  it('are commands of sockets too: a run of the channel is cancelled, one of another channel is not found', async () => {
    const { platform, documents } = api;
    const context = { platform, features: documents.api.features, logChecked: Promise.resolve() };
    const [url, realtime] = [await documents.api.listen(), await startRealtime(context, parseConfig({}))];
    await api.withoutWorker(async () => {
      const [own, other] = [await api.ask('When does it open?'), await api.ask('When does it close?')];
      const ticket = (await api.call('POST', `/api/v1/channels/${own.channelId}/websocket_ticket`)).json.value;
      const socket = openSocket(url, own.channelId, ticket);
      const frames: Json[] = [];
      socket.on('message', (data: Buffer) => frames.push(JSON.parse(data.toString())));
      await once(socket, 'open');
      const cancel = async (run_id: string): Promise<Json> => {
        const id = newId();
        socket.send(JSON.stringify({ frame: 'command', id, type: 'run.cancel', data: { run_id } }));
        return eventually(() => frames.find((frame) => frame.id === id) ?? false);
      };
      expect(await cancel(other.runId)).toMatchObject({ frame: 'error', code: 'not_found' });
      expect(await cancel(newId())).toMatchObject({ frame: 'error', code: 'not_found' });
      expect(await cancel(own.runId)).toMatchObject({ frame: 'ack', seq: null });
      expect(await api.run(own.runId)).toMatchObject({ status: 'cancelled' });
      expect(await api.run(other.runId)).toMatchObject({ status: 'queued' });
      socket.close();
    });
    await realtime.stop();
  });

  it.each([
    { how: 'cancelled', what: 'posts the response', dies: false },
    { how: 'cancelled', what: 'dies once it has posted the response', dies: true },
    { how: 'given up', what: 'posts the response', dies: false },
    { how: 'given up', what: 'dies once it has posted the response', dies: true },
  ])('show one end of a run that was $how, and whose worker $what afterwards', async ({ how, dies }) => {
    const { id } = await api.newAgent({ name: 'Late' });
    const commands = api.documents.api.features.channels.interactions;
    const asked = await api.withoutWorker(async () => {
      const one = await api.ask('When does it open?', { agentId: id });
      await (await api.stepOf(one.runId, 0))?.attempt();
      const step = await api.stepOf(one.runId, 1);
      await step?.attempt(() => Promise.reject(new Error('killed')));
      await step?.attempt(async (...late) => {
        if (how === 'given up') await step.giveUp();
        else await api.call('POST', `/api/v1/runs/${one.runId}/cancel`);
        await (await api.stepOf(one.runId, 0, 'run-ends'))?.attempt();
        const post = commands.post.bind(commands);
        const posting = vi.spyOn(commands, 'post').mockImplementation(async (...args) => {
          const posted = await post(...args);
          if (dies) throw new Error('killed');
          return posted;
        });
        try {
          return await step.handle(...late);
        } finally {
          expect(posting).toHaveBeenCalled();
          posting.mockRestore();
        }
      });
      return one;
    });
    const end = how === 'given up' ? 'RunFailed' : 'RunCancelled';
    expect(await api.types(asked.runId)).toEqual(['RunRequested', 'RunClaimed', 'StepStarted', end, 'RunEndShown']);
    const cancelled = {
      content_role: 'agent_response',
      complete: true,
      metadata: { failure: 'the run was cancelled' },
    };
    const failed = { content_role: 'internal_error', complete: true, metadata: { reason: 'attempts' } };
    expect(await api.tree(asked)).toMatchObject([how === 'given up' ? failed : cancelled]);
  });

  it('answer another organization as for a run that does not exist', async () => {
    const asked = await api.ask('When does the warehouse in Bremen open?');
    const missing = await api.call('GET', `/api/v1/runs/${newId()}`);
    expect(missing.status).toBe(404);
    for (const [method, url] of [
      ['GET', `/api/v1/runs/${asked.runId}`],
      ['POST', `/api/v1/runs/${asked.runId}/cancel`],
    ] as const) {
      const foreign = await api.call(method, url, undefined, api.foreignKey);
      expect([foreign.status, foreign.bytes]).toEqual([404, missing.bytes]);
    }
    expect((await api.call('GET', '/api/v1/runs/none')).bytes).toBe(missing.bytes);
    expect(await api.ended(asked.runId)).toMatchObject({ status: 'completed' });
  });
});

describe('a worker that dies', () => {
  /** Every event of a run is handled twice, the second time by a worker that knows nothing of the first. */
  it('at any step leaves a run that another one ends, with each part of its tree once', async () => {
    const asked = await api.withoutWorker(async () => {
      const one = await api.ask('When does the warehouse in Bremen open?');
      for (
        let step = await api.stepOf(one.runId, 0);
        step !== null;
        step = await api.stepOf(one.runId, step.revision + 1)
      ) {
        // What it does in the channel is done; its outcome is not recorded.
        await step.diesBeforeItsOutcome();
        await step.attempt();
      }
      return one;
    });
    const types = await api.types(asked.runId);
    expect(types).toEqual([
      'RunRequested',
      'RunClaimed',
      'StepStarted',
      'ModelStepFinished',
      'StepStarted',
      'ToolStepFinished',
      'StepStarted',
      'ModelStepFinished',
      'RunCompleted',
    ]);
    const tree = await api.tree(asked);
    expect(tree.map(({ content_role }) => content_role)).toEqual([
      'agent_reasoning',
      'tool_call',
      'tool_call_result',
      'agent_response',
    ]);
    expect((await api.response(asked)).content[0].text).toContain(`- ${HOURS} [1]`);
    const message = (await api.call('GET', `/api/v1/interactions/${asked.message.id}`)).json;
    expect(message.agent_read_receipts).toHaveLength(1);
  });
});

describe('several workers', () => {
  it('share runs, and each run is answered once', async () => {
    const others: RunningRole[] = [await api.startWorker(), await api.startWorker()];
    const asked = await Promise.all(
      Array.from({ length: 12 }, () => api.ask('When does the warehouse in Bremen open?')),
    );
    for (const one of asked) {
      expect(await api.ended(one.runId)).toMatchObject({ status: 'completed' });
      expect(await api.tree(one)).toHaveLength(4);
    }
    await Promise.all(others.map((worker) => worker.stop()));
  });
});
