/** External agents: their teams receive invocations, and answer runs over the API. */
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { Inboxes, inboxEntity, MAX_UNANSWERED } from '#libs/features/agents/agent.inbox.ts';
import { RunInChannel } from '#libs/features/answering/run/run.channel.ts';
import { postedResponse } from '#libs/features/answering/external/run.external.http.ts';
import { streamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { EventFrame } from '#libs/platform/live/index.ts';
import { openCore } from '#libs/platform/runtime/index.ts';
import { CountingStore } from '#test/support/counting-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { logMetadata } from '#test/support/log-events.ts';
import type { Json } from '#test/support/runs-api.ts';

import {
  hook,
  api,
  origin,
  agentId,
  key,
  keyFor,
  team,
  handedOver,
  framesAfter,
  told,
  roles,
  follow,
  useExternalTeam,
} from './external-team.ts';

useExternalTeam();

describe('an external agent', () => {
  it('has an inbox with its own id, and followers of the one receive no frame of the other', async () => {
    const { id } = await api.newAgent({ name: 'Twin', runtime: 'external' });
    // The inbox is ahead of the agent, and then the agent of the inbox: in both cases the next number is foreign.
    const ofAgent = await follow(`/api/v1/agents/${id}/events`, api.documents.api.rootKey);
    for (const text of ['One?', 'Two?', 'Three?']) await handedOver(text, { agentId: id });
    const ofInbox = await follow(`/api/v1/agents/${id}/invocations/events`, await keyFor(id));
    for (const personality of ['calm', 'cool', 'kind']) {
      expect((await api.call('PATCH', `/api/v1/agents/${id}`, { personality })).status).toBe(200);
    }
    await handedOver('Four?', { agentId: id });
    const types = ({ frames }: typeof ofAgent) => frames.map(({ type }) => type);
    await eventually(() => expect(ofAgent.frames.at(-1)?.data).toMatchObject({ personality: 'kind' }));
    expect(types(ofAgent)).toEqual(['agent.updated', 'agent.updated', 'agent.updated']);
    await eventually(() => expect(ofInbox.frames).toHaveLength(1));
    expect(types(ofInbox)).toEqual(['invocation.requested']);
    ofAgent.stop();
    ofInbox.stop();
  });

  it('receives its invocations as frames, resumes, reads the conversation, and answers once', async () => {
    const first = await handedOver('One?');
    const second = await handedOver('Two?', { channelId: first.channelId });
    const frames = await framesAfter(0, 3);
    expect(frames.map(({ type }) => type)).toEqual(['inbox.opened', 'invocation.requested', 'invocation.requested']);
    expect(frames[1].data).toEqual({
      run_id: first.runId,
      agent_id: agentId,
      channel_id: first.channelId,
      message_id: first.message.id,
      interaction_id: first.message.interaction_id,
      depth: 0,
      asked_by: null,
      span_id: first.message.span_id,
      content: [{ type: 'text', text: 'One?' }],
    });
    expect((await framesAfter(2, 1)).map(({ data }) => data.run_id)).toEqual([second.runId]);

    expect((await team('GET', second, 'conversation')).json.messages).toEqual([
      { role: 'user', text: 'One?', content: [{ type: 'text', text: 'One?' }] },
      { role: 'user', text: 'Two?', content: [{ type: 'text', text: 'Two?' }] },
    ]);
    const answer = await team('POST', second, 'response', { text: 'Two <b>it</b> is.' });
    expect(answer).toMatchObject({ status: 200, json: { id: second.runId } });
    const run = await api.ended(second.runId);
    expect(run).toMatchObject({ status: 'completed', model: { kind: 'external', name: 'Echo' }, cost: null });
    expect(await roles(second)).toEqual(['agent_response']);
    const response = await api.response(second);
    expect(response).toMatchObject({
      id: run.response_id,
      complete: true,
      content: [{ text: 'Two <b>it</b> is.' }],
      metadata: { run_id: second.runId, model: { kind: 'external', name: 'Echo' } },
    });
    const message = (await api.call('GET', `/api/v1/interactions/${second.message.id}`)).json;
    expect(message.agent_read_receipts).toHaveLength(1);

    // Repeated it has no effect; another answer, or a failure, is refused.
    expect((await team('POST', second, 'response', { text: 'Two <b>it</b> is.' })).status).toBe(200);
    for (const [what, body] of [
      ['response', { text: 'Three.' }],
      ['failure', { message: 'no' }],
      ['deltas', { text: 'Three.' }],
    ] as const) {
      expect(await team('POST', second, what, body)).toMatchObject({ status: 409, json: { code: 'run_answered' } });
    }
    expect((await api.types(second.runId)).filter((type) => type === 'ModelStepFinished')).toHaveLength(1);
    expect(await told(second)).toEqual({ status: 'completed', reason: null });
  });

  it('streams its answer, which readers see before it is complete', async () => {
    const asked = await handedOver();
    expect((await team('POST', asked, 'deltas', { text: 'It <' })).json).toEqual({ length: 4 });
    expect((await team('POST', asked, 'deltas', { offset: 4, text: 'is nine.' })).json).toEqual({ length: 12 });
    const drafts = () => api.documents.api.features.channels.drafts.current(api.organizationId, asked.channelId);
    expect(JSON.stringify(await drafts())).toContain('It <is nine.');
    expect(await api.response(asked)).toMatchObject({ complete: false });
    expect(await team('POST', asked, 'deltas', { offset: 3, text: 'x' })).toMatchObject({
      status: 409,
      json: { code: 'wrong_offset' },
    });
    const long = '<'.repeat(100_000);
    for (let count = 0; count < 10; count += 1) {
      await team('POST', asked, 'deltas', { offset: count === 0 ? null : count * 100_000, text: long });
    }
    expect(await team('POST', asked, 'deltas', { offset: 1_000_000, text: long })).toMatchObject({
      status: 409,
      json: { code: 'draft_too_long' },
    });
    // It would leave the draft incomplete.
    expect((await team('POST', asked, 'response', { text: '' })).status).toBe(422);
    await team('POST', asked, 'response', { text: 'It is nine.' });
    await api.ended(asked.runId);
    expect(await api.response(asked)).toMatchObject({ complete: true, content: [{ text: 'It is nine.' }] });
  });

  it('leaves nothing incomplete if its first words come as the run ends', async () => {
    const asked = await handedOver();
    const { runs, channels } = api.documents.api.features;
    const run = (await runs.inLog(api.organizationId, asked.runId))!;
    await api.call('POST', `/api/v1/runs/${asked.runId}/cancel`);
    await eventually(async () => expect(await api.types(asked.runId)).toContain('RunEndShown'));
    const answering = { channels, organizations: { application: () => Promise.resolve(null) } };
    const channel = new RunInChannel(run, answering, {});
    await postedResponse(run, channel);
    expect(await api.response(asked)).toMatchObject({ complete: true });
  });

  it('may fail with a message for readers, and keeps what it has written', async () => {
    const asked = await handedOver();
    await team('POST', asked, 'deltas', { text: 'Well' });
    const failure = { message: 'the oracle is <closed>' };
    expect((await team('POST', asked, 'failure', failure)).json).toMatchObject({
      status: 'failed',
      error: { reason: 'agent_failed', message: 'the oracle is <closed>' },
    });
    await eventually(async () => expect(await roles(asked)).toEqual(['agent_response', 'internal_error']));
    expect(await api.response(asked)).toMatchObject({ complete: true, content: [{ text: 'Well' }] });
    expect((await team('POST', asked, 'failure', failure)).status).toBe(200);
    const late = await team('POST', asked, 'response', { text: 'Too late.' });
    expect(late).toMatchObject({ status: 409, json: { code: 'run_ended' } });
    expect(await told(asked)).toEqual({ status: 'failed', reason: 'agent_failed' });
  });

  it('answers no run that was cancelled, and learns so', async () => {
    const asked = await handedOver();
    await api.call('POST', `/api/v1/runs/${asked.runId}/cancel`);
    const late = await team('POST', asked, 'response', { text: 'Too late.' });
    expect(late).toMatchObject({ status: 409, json: { code: 'run_ended' } });
    expect(await told(asked)).toEqual({ status: 'cancelled', reason: null });
  });

  it('learns once that a run was cancelled, whichever worker dies', async () => {
    await api.withoutWorker(async () => {
      const asked = await api.ask('Are you there?', { agentId });
      for (const reactor of ['agent-runs', 'external-runs'] as const)
        await (await api.stepOf(asked.runId, 0, reactor))?.attempt();
      await api.call('POST', `/api/v1/runs/${asked.runId}/cancel`);
      const step = await api.stepOf(asked.runId, 0, 'run-ends');
      await step?.diesBeforeItsOutcome();
      await step?.attempt();
      expect(await told(asked)).toEqual({ status: 'cancelled', reason: null });
    });
  });

  it('learns that a run was cancelled while it got the run', async () => {
    await api.withoutWorker(async () => {
      const asked = await api.ask('Are you there?', { agentId });
      await (await api.stepOf(asked.runId, 0))?.attempt();
      const step = await api.stepOf(asked.runId, 0, 'external-runs');
      await step?.attempt(async (...args) => {
        await api.call('POST', `/api/v1/runs/${asked.runId}/cancel`);
        await (await api.stepOf(asked.runId, 0, 'run-ends'))?.attempt();
        return step.handle(...args);
      });
      expect(await told(asked)).toEqual({ status: 'cancelled', reason: null });
      expect(await api.types(asked.runId)).not.toContain('RunHandedOver');
    });
  });

  it('that was deactivated gets no more runs', async () => {
    const { id } = await api.newAgent({ name: 'Leaving', runtime: 'external' });
    await api.call('POST', `/api/v1/agents/${id}/webhook`, { url: `http://127.0.0.1:${hook.port}/hook` });
    const before = hook.received.length;
    const asked = await api.withoutWorker(async () => {
      const one = await api.ask('Are you there?', { agentId: id });
      await (await api.stepOf(one.runId, 0))?.attempt();
      expect(await api.types(one.runId)).toContain('RunClaimed');
      await api.call('POST', `/api/v1/agents/${id}/deactivate`);
      return one;
    });
    expect(await api.ended(asked.runId)).toMatchObject({ status: 'failed', error: { reason: 'agent_gone' } });
    expect(hook.received).toHaveLength(before);
    expect(await api.documents.types(`inbox-${id}`)).toEqual(['InboxOpened.v1']);
  });

  it('that leaves too many runs unanswered gets no more, and holds up no other', async () => {
    const { id } = await api.newAgent({ name: 'Silent', runtime: 'external' });
    const stream = `inbox-${id}`;
    const about = { channelId: newId(), messageId: newId(), turnId: newId(), depth: 0, askedBy: null };
    const metadata = {
      ...logMetadata(newId()),
      at: new Date().toISOString(),
      organizationId: api.organizationId,
    };
    const unanswered = Array.from({ length: MAX_UNANSWERED }, () => {
      return { id: newId(), type: 'InvocationDelivered.v1', data: { ...about, runId: newId() }, metadata };
    });
    const appended = await api.platform.store.append(stream, streamRevision(0), unanswered);
    expect(appended).toMatchObject({ kind: 'appended' });
    const asked = await api.ask('Are you there?', { agentId: id });
    expect(await api.ended(asked.runId)).toMatchObject({ status: 'failed', error: { reason: 'agent_busy' } });
    await eventually(async () => expect(await roles(asked)).toEqual(['internal_error']));
    expect(await api.documents.types(stream)).toHaveLength(1 + MAX_UNANSWERED);
    await team('POST', await handedOver(), 'response', { text: 'Yes.' });
  });

  it('that does not answer ends with an internal error', async () => {
    const asked = await api.withoutWorker(async () => {
      const one = await api.ask('Are you there?', { agentId });
      await (await api.stepOf(one.runId, 0))?.attempt();
      await (await api.stepOf(one.runId, 0, 'external-runs'))?.giveUp();
      return one;
    });
    const run = await api.ended(asked.runId);
    expect(run).toMatchObject({ status: 'failed', error: { reason: 'not_reached' } });
    await eventually(async () => expect(await roles(asked)).toEqual(['internal_error']));
    const late = api.documents.api.features.reactors.find(({ name }) => name === 'external-runs');
    expect(late?.giveUp(null, { reason: 'deadline', lastError: null }, {} as never, {} as never)).toMatchObject([
      { type: 'RunFailed.v1', data: { reason: 'not_answered', message: 'the agent did not answer in time' } },
    ]);
  });

  it('receives a run once, whichever worker dies', async () => {
    const asked = await api.withoutWorker(async () => {
      const one = await api.ask('Are you there?', { agentId });
      for (const reactor of ['agent-runs', 'external-runs'] as const) {
        const step = await api.stepOf(one.runId, 0, reactor);
        await step?.diesBeforeItsOutcome();
        await step?.attempt();
      }
      return one;
    });
    const inbox = JSON.stringify(await api.documents.events(`inbox-${agentId}`));
    expect(inbox.split(asked.runId)).toHaveLength(2);
    await team('POST', asked, 'response', { text: 'Yes.' });
    expect(await api.ended(asked.runId)).toMatchObject({ status: 'completed' });
    expect(await roles(asked)).toEqual(['agent_response']);
  });
});

describe('the inbox of an external agent', () => {
  it('is read from the position of the client, however long it is', async () => {
    const { id } = await api.newAgent({ name: 'Reader', runtime: 'external' });
    const own = await keyFor(id);
    const stream = `inbox-${id}`;
    for (let n = 0; n < 2; n += 1) {
      const asked = await handedOver('Are you there?', { agentId: id });
      await team('POST', asked, 'response', { text: 'Yes.' }, own);
      await told(asked);
    }
    const head = (await api.documents.types(stream)).length;
    const store = new CountingStore(api.platform.store);
    const { log } = new Inboxes(openCore({ ...api.platform, store }, [inboxEntity.projection])).source;
    const framesOf = async (after: number): Promise<readonly EventFrame[]> =>
      (await Array.fromAsync(log.framesAfter(api.organizationId, id, after))).flat();
    const found = await framesOf(head - 1);
    expect(found).toMatchObject([{ sequence: head }]);
    const frames = found.map(({ json }): Json => JSON.parse(json));
    expect(frames).toEqual(await framesAfter(head - 1, 1, id, own));
    expect(frames).toMatchObject([
      { type: 'invocation.ended', data: { agent_id: id, status: 'completed', reason: null } },
    ]);
    expect(store.eventsRead).toBe(1);
    expect(await framesOf(head)).toEqual([]);
  });
});

describe('the key of an external agent', () => {
  it('acts for its agent alone, and for nothing else', async () => {
    const asked = await handedOver();
    const other = await keyFor((await api.newAgent({ name: 'Other', runtime: 'external' })).id);
    const missing = await api.call('GET', `/api/v1/runs/${newId()}/conversation`, undefined, key);
    expect(missing.status).toBe(404);
    const requests = [
      ['GET', `/api/v1/runs/${asked.runId}/conversation`, undefined],
      ['GET', `/api/v1/agents/${agentId}/invocations/events`, undefined],
      ['POST', `/api/v1/runs/${asked.runId}/deltas`, { text: 'x' }],
      ['POST', `/api/v1/runs/${asked.runId}/response`, { text: 'x' }],
      ['POST', `/api/v1/runs/${asked.runId}/failure`, { message: 'x' }],
    ] as const;
    for (const [method, url, body] of requests) {
      const foreign = await api.call(method, url, body, other);
      expect([foreign.status, foreign.bytes]).toEqual([404, missing.bytes]);
      expect(await api.call(method, url, body, api.foreignKey)).toMatchObject({
        status: 403,
        json: { code: 'missing_scope' },
      });
      // Every scope, but of another principal.
      expect((await api.call(method, url, body)).bytes).toBe(missing.bytes);
    }
    expect((await api.call('GET', `/api/v1/runs/${asked.runId}`, undefined, key)).status).toBe(403);
    expect((await api.call('POST', '/api/v1/channels', { name: 'x' }, key)).status).toBe(403);
    await team('POST', asked, 'response', { text: 'Yes.' });
  });

  it('does not answer what Parley answers, and is created only by keys with its scope', async () => {
    const own = await keyFor(api.agentId);
    const asked = await api.ask('When does the warehouse in Bremen open?');
    await api.ended(asked.runId);
    const refused = await team('POST', asked, 'response', { text: 'x' }, own);
    expect(refused).toMatchObject({ status: 409, json: { code: 'not_external' } });
    const admin = (await api.call('POST', '/api/v1/keys', { name: 'a', scopes: ['admin'], access: 'organization' }))
      .json.key;
    const body = { name: 'b', scopes: ['agent'], principal: { type: 'service', id: agentId } };
    expect((await api.call('POST', '/api/v1/keys', body, admin)).json).toMatchObject({ code: 'missing_scope' });
  });
});

describe('docs/external-agents.md', () => {
  it('has a program that answers', async () => {
    const page = await readFile(join(import.meta.dirname, '../../../../docs/external-agents.md'), 'utf8');
    const program = /```js\n([^]*?)```/.exec(page)?.[1] ?? '';
    const folder = await mkdtemp(join(tmpdir(), 'parley-external-'));
    const file = join(folder, 'echo.mjs');
    await writeFile(file, program);
    const { id: echo } = await api.newAgent({ name: 'Program', runtime: 'external' });
    const env = { PATH: process.env['PATH'] ?? '', BASE_URL: origin, AGENT: echo, AGENT_KEY: await keyFor(echo) };
    const running = spawn(process.execPath, [file], { env, stdio: 'inherit' });
    try {
      const asked = await api.ask('is anyone there?', { agentId: echo });
      expect(await api.ended(asked.runId)).toMatchObject({ status: 'completed' });
      expect((await api.response(asked)).content[0].text).toBe('You said: is anyone there?');
    } finally {
      running.kill();
      await rm(folder, { recursive: true });
    }
  });
});
