/** External agents: their teams receive invocations, and answer runs over the API. */
import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { Inboxes, inboxEntity, MAX_UNANSWERED } from '#libs/features/agents/agent.inbox.ts';
import { RunInChannel } from '#libs/features/answering/run/run.channel.ts';
import { postedResponse } from '#libs/features/answering/external/run.external.http.ts';
import { streamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { EventFrame } from '#libs/platform/live/index.ts';
import { openCore } from '#libs/platform/runtime/index.ts';
import { startReactors } from '#services/worker/role.ts';
import { CountingStore } from '#test/support/counting-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { logMetadata } from '#test/support/log-events.ts';
import { keysIn } from '#test/support/redis-commands.ts';
import { type Asked, type Json, RunsApi } from '#test/support/runs-api.ts';

interface Hook {
  readonly server: Server;
  readonly port: number;
  /** Answers for the next requests; then 204. */
  readonly answers: ((response: ServerResponse) => void)[];
  readonly received: { readonly headers: IncomingHttpHeaders; readonly body: string }[];
}

async function startHook(): Promise<Hook> {
  const answers: Hook['answers'] = [];
  const received: Hook['received'] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      received.push({ headers: request.headers, body });
      const answer = answers.shift();
      if (answer === undefined) response.writeHead(204).end();
      else answer(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, port: (server.address() as AddressInfo).port, answers, received };
}

let hook: Hook;
let api: RunsApi;
let origin: string;
let agentId: string;
let key: string;

const keyFor = async (id: string): Promise<string> => {
  const body = { name: 'team', scopes: ['agent'], principal: { type: 'service', id } };
  return (await api.call('POST', '/api/v1/keys', body)).json.key;
};

beforeAll(async () => {
  hook = await startHook();
  api = await RunsApi.start({ fetch: { allowHosts: [{ host: '127.0.0.1', port: hook.port }] } });
  origin = await api.documents.api.listen();
  agentId = (await api.newAgent({ name: 'Echo', runtime: 'external' })).id;
  key = await keyFor(agentId);
});
afterAll(async () => {
  await api?.stop();
  hook?.server.close();
  hook?.server.closeAllConnections();
});

const team = (method: 'GET' | 'POST', asked: Asked, what: string, body?: object, as = key) =>
  api.call(method, `/api/v1/runs/${asked.runId}/${what}`, body, as);

/** A run that a worker has handed over. */
async function handedOver(text = 'Are you there?', options: Parameters<RunsApi['ask']>[1] = {}): Promise<Asked> {
  const asked = await api.ask(text, { agentId, ...options });
  await eventually(async () => expect(await api.types(asked.runId)).toContain('RunHandedOver'));
  return asked;
}

/** Frames of the invocations of an agent after a sequence, as far as they are there. */
async function framesAfter(sequence: number, count: number, id = agentId, as = key): Promise<Json[]> {
  const abort = new AbortController();
  const headers = { authorization: as, accept: 'text/event-stream', 'last-event-id': String(sequence) };
  const url = `${origin}/api/v1/agents/${id}/invocations/events`;
  const { body, status } = await fetch(url, { headers, signal: abort.signal });
  expect(status).toBe(200);
  let read = '';
  const frames = () =>
    read
      .split('\n\n')
      .slice(0, -1)
      .flatMap((one) => [...one.matchAll(/^data: (.*)$/gm)].map(([, json = '']) => JSON.parse(json) as Json));
  for await (const chunk of body!.pipeThrough(new TextDecoderStream())) {
    read += chunk;
    if (frames().length >= count) break;
  }
  abort.abort();
  return frames();
}

/** What the inbox of the agent tells of the end of a run. */
const told = (asked: Asked): Promise<Json> =>
  eventually(async () => {
    const events = (await api.documents.events(`inbox-${asked.agentId}`)).map(({ type, data }): Json => ({
      type,
      data,
    }));
    const ends = events.filter(({ type, data }) => type === 'InvocationEnded.v1' && data.runId === asked.runId);
    expect(ends).toHaveLength(1);
    const { status, reason } = ends[0].data;
    return { status, reason };
  });

const roles = async (asked: Asked): Promise<string[]> =>
  (await api.tree(asked)).map(({ content_role }) => content_role);

/** Frames of a stream of events from now on, which grow as they arrive. */
async function follow(path: string, as: string): Promise<{ readonly frames: Json[]; readonly stop: () => void }> {
  const abort = new AbortController();
  const headers = { authorization: as, accept: 'text/event-stream' };
  const { body, status } = await fetch(`${origin}${path}`, { headers, signal: abort.signal });
  expect(status).toBe(200);
  const frames: Json[] = [];
  const read = async (): Promise<void> => {
    let text = '';
    for await (const chunk of body!.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      frames.splice(0, Infinity, ...[...text.matchAll(/^data: (.*)\n\n/gm)].map(([, json = '']) => JSON.parse(json)));
    }
  };
  void read().catch(() => undefined);
  return { frames, stop: () => abort.abort() };
}

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

describe('a webhook', () => {
  it('gets invocations with a signature, until it accepts them', async () => {
    const { id } = await api.newAgent({ name: 'Hooked', runtime: 'external' });
    const url = `http://127.0.0.1:${hook.port}/hook`;
    const { json } = await api.call('POST', `/api/v1/agents/${id}/webhook`, { url });
    expect(json).toEqual({ url, secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{32}$/) });
    const agent = await api.call('GET', `/api/v1/agents/${id}`);
    expect(agent.json.webhook_url).toBe(url);
    const log = JSON.stringify(await api.documents.events(`agent-${id}`));
    for (const shown of [agent.bytes, log]) expect(shown).not.toContain(json.secret);

    hook.answers.push((response) => response.writeHead(500).end());
    const asked = await handedOver('Hello?', { agentId: id });
    expect(hook.received).toHaveLength(2);
    for (const { headers, body } of hook.received) {
      const signed = `${asked.runId}.${String(headers['webhook-timestamp'])}.${body}`;
      const secret = Buffer.from(json.secret.slice('whsec_'.length), 'base64');
      const signature = createHmac('sha256', secret).update(signed).digest('base64');
      expect(headers).toMatchObject({ 'webhook-id': asked.runId, 'webhook-signature': `v1,${signature}` });
      expect(JSON.parse(body)).toMatchObject({ type: 'invocation.requested', data: { run_id: asked.runId } });
    }

    // The status counts, and not a body that is too large and never ends.
    hook.answers.push((response) => response.writeHead(200, { 'content-length': 10 * 1024 * 1024 }).flushHeaders());
    await handedOver('Hello?', { agentId: id });
    expect(hook.received).toHaveLength(3);

    const removed = await api.call('POST', `/api/v1/agents/${id}/webhook`, { url: null });
    expect(removed.json).toEqual({ url: null, secret: null });
    await handedOver('Hello?', { agentId: id });
    expect(hook.received).toHaveLength(3);
  });
});

describe('the webhook of an agent', () => {
  const newHooked = async () => {
    const { id } = await api.newAgent({ name: 'Hooked', runtime: 'external' });
    const { json } = await api.call('POST', `/api/v1/agents/${id}/webhook`, { url: `http://127.0.0.1:${hook.port}/x` });
    return { id, secret: Buffer.from(json.secret.slice('whsec_'.length), 'base64'), own: await keyFor(id) };
  };
  const receivedOf = ({ runId }: Asked) => hook.received.filter(({ body }) => body.includes(runId));

  it('learns that a run need not be answered any longer, until it accepts that', async () => {
    const { id, secret } = await newHooked();
    const asked = await handedOver('Hello?', { agentId: id });
    hook.answers.push((response) => response.writeHead(503).end());
    await api.call('POST', `/api/v1/runs/${asked.runId}/cancel`);
    await eventually(() => expect(receivedOf(asked)).toHaveLength(3));
    for (const { headers, body } of receivedOf(asked).slice(1)) {
      const signed = `${asked.runId}.ended.${String(headers['webhook-timestamp'])}.${body}`;
      const signature = createHmac('sha256', secret).update(signed).digest('base64');
      expect(headers).toMatchObject({ 'webhook-id': `${asked.runId}.ended`, 'webhook-signature': `v1,${signature}` });
      expect(JSON.parse(body)).toMatchObject({
        type: 'invocation.ended',
        data: { run_id: asked.runId, agent_id: id, status: 'cancelled', reason: null },
      });
    }
  });

  it('is not told what its agent has done itself', async () => {
    const { id, own } = await newHooked();
    const [answered, failed] = [
      await handedOver('Hello?', { agentId: id }),
      await handedOver('Hello?', { agentId: id }),
    ];
    await team('POST', answered, 'response', { text: 'Yes.' }, own);
    await team('POST', failed, 'failure', { message: 'no' }, own);
    await Promise.all([told(answered), told(failed)]);
    const last = await handedOver('Hello?', { agentId: id });
    await api.call('POST', `/api/v1/runs/${last.runId}/cancel`);
    await eventually(() => expect(receivedOf(last)).toHaveLength(2));
    for (const asked of [answered, failed]) expect(receivedOf(asked)).toHaveLength(1);
  });

  it('that refuses an invocation eight times ends the run', async () => {
    const { id } = await newHooked();
    const { features } = api.documents.api;
    const hurried = features.reactors.map((one) =>
      one.name === 'external-runs' ? { ...one, limits: { ...one.limits, pauseMs: { first: 1, longest: 1 } } } : one,
    );
    const asked = await api.withoutWorker(async () => {
      const context = { platform: api.platform, features, logChecked: Promise.resolve() };
      const worker = await startReactors(context, hurried);
      try {
        for (let n = 0; n < 20; n += 1) hook.answers.push((response) => response.writeHead(500).end());
        const one = await api.ask('Hello?', { agentId: id });
        expect(await api.ended(one.runId)).toMatchObject({ status: 'failed', error: { reason: 'not_reached' } });
        return one;
      } finally {
        hook.answers.length = 0;
        await worker.stop();
      }
    });
    expect(await told(asked)).toEqual({ status: 'failed', reason: 'not_reached' });
    expect(receivedOf(asked)).toHaveLength(8);
    expect(new Set(receivedOf(asked).map(({ headers }) => headers['webhook-id']))).toEqual(new Set([asked.runId]));
  });
});

describe('the URL of a webhook', () => {
  it.each([
    ['a private address', 'http://10.0.0.1/hook'],
    ['a private address in another form', 'http://0x7f.1/hook'],
    ['a user name', 'https://user:secret@example.org/hook'],
    ['a port that is refused', 'https://example.org:8443/hook'],
    ['a fragment', 'https://example.org/hook#now'],
  ])('is not taken with %s', async (_what, url) => {
    const { id } = await api.newAgent({ name: 'Hooked', runtime: 'external' });
    const refused = await api.call('POST', `/api/v1/agents/${id}/webhook`, { url });
    expect([refused.status, refused.json.detail[0].loc]).toEqual([422, ['body', 'url']]);
    expect((await api.call('GET', `/api/v1/agents/${id}`)).json.webhook_url).toBeNull();
  });

  it('is shown to administrators only', async () => {
    const { id } = await api.newAgent({ name: 'Hooked', runtime: 'external' });
    const url = `http://127.0.0.1:${hook.port}/hook?token=secret`;
    await api.call('POST', `/api/v1/agents/${id}/webhook`, { url });
    const scopes = ['read', 'write'];
    const { key: writer } = (await api.call('POST', '/api/v1/keys', { name: 'writer', scopes, access: 'organization' }))
      .json;
    const shown = [
      await api.call('GET', `/api/v1/agents/${id}`, undefined, writer),
      await api.call('GET', '/api/v1/agents?name=Hooked', undefined, writer),
      await api.call('PATCH', `/api/v1/agents/${id}`, { description: 'x' }, writer),
    ];
    for (const { status, bytes } of shown) expect([status, String(bytes).includes('token=')]).toEqual([200, false]);
    const abort = new AbortController();
    const headers = { authorization: api.documents.api.rootKey, accept: 'text/event-stream', 'last-event-id': '0' };
    const frames = await fetch(`${origin}/api/v1/agents/${id}/events`, { headers, signal: abort.signal });
    let read = '';
    for await (const chunk of frames.body!.pipeThrough(new TextDecoderStream())) {
      read += chunk;
      if (read.includes('"description":"x"')) break;
    }
    abort.abort();
    expect(read).not.toContain('token=');
    expect((await api.call('GET', `/api/v1/agents/${id}`)).json.webhook_url).toBe(url);
  });
});

describe('a webhook that answers', () => {
  it('429 gets the pause that it asks for', async () => {
    const { id } = await api.newAgent({ name: 'Hooked', runtime: 'external' });
    await api.call('POST', `/api/v1/agents/${id}/webhook`, { url: `http://127.0.0.1:${hook.port}/hook` });
    hook.answers.push((response) => response.writeHead(429, { 'retry-after': '4' }).end());
    const { runId } = await handedOver('Hello?', { agentId: id });
    const times = hook.received
      .filter(({ body }) => body.includes(runId))
      .map(({ body }) => Date.parse((JSON.parse(body) as Json).timestamp));
    expect(times).toHaveLength(2);
    expect(times[1]! - times[0]!).toBeGreaterThanOrEqual(4_000);
  });

  it('410 is removed, and the invocation stays in the inbox', async () => {
    const { id } = await api.newAgent({ name: 'Hooked', runtime: 'external' });
    await api.call('POST', `/api/v1/agents/${id}/webhook`, { url: `http://127.0.0.1:${hook.port}/hook` });
    hook.answers.push((response) => response.writeHead(410).end());
    const asked = await handedOver('Hello?', { agentId: id });
    expect(hook.received.filter(({ body }) => body.includes(asked.runId))).toHaveLength(1);
    const events = await api.documents.events(`agent-${id}`);
    expect(events.at(-1)).toEqual({ type: 'AgentWebhookSet.v1', data: { webhook: null, isGone: true } });
    expect((await api.call('GET', `/api/v1/agents/${id}`)).json.webhook_url).toBeNull();
    const answered = await team('POST', asked, 'response', { text: 'Yes.' }, await keyFor(id));
    expect(answered.status).toBe(200);
  });
});

describe('the secret of a webhook', () => {
  it('is not made up for a repeated request whose first answer was not stored', async () => {
    const { id } = await api.newAgent({ name: 'Repeated', runtime: 'external' });
    const url = `http://127.0.0.1:${hook.port}/hook`;
    const set = async () =>
      (await api.documents.call('POST', `/api/v1/agents/${id}/webhook`, { url }, { 'idempotency-key': id })).json;
    expect(await set()).toEqual({ url, secret: expect.stringMatching(/^whsec_/) });
    const { redis } = api.platform;
    await redis.remove(await keysIn(redis, 'parley:idempotency:*:reply'));
    expect(await set()).toEqual({ url, secret: null });
    const events = await api.documents.events(`agent-${id}`);
    expect(events.filter(({ type }) => type === 'AgentWebhookSet.v1')).toHaveLength(1);
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
