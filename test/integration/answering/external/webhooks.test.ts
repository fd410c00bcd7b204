/** Webhooks of external agents: what is sent, retried, refused and signed. */
import { createHmac } from 'node:crypto';

import { describe, expect, it } from 'vitest';

import { startReactors } from '#services/worker/role.ts';
import { eventually } from '#test/support/eventually.ts';
import { keysIn } from '#test/support/redis-commands.ts';
import type { Asked, Json } from '#test/support/runs-api.ts';

import { hook, api, origin, keyFor, team, handedOver, told, useExternalTeam } from './external-team.ts';

useExternalTeam();

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
