/** Programs of external agents, with the scope `agent` alone: what they show beside the answer, and how they recover. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import { eventually } from '#test/support/eventually.ts';
import { type Asked, type Json, RunsApi } from '#test/support/runs-api.ts';

let api: RunsApi;
let agentId: string;
let key: string;

beforeAll(async () => {
  api = await RunsApi.start();
  agentId = (await api.newAgent({ name: 'Clerk', runtime: 'external' })).id;
  const body = { name: 'team', scopes: ['agent'], principal: { type: 'service', id: agentId } };
  key = (await api.call('POST', '/api/v1/keys', body)).json.key;
});
afterAll(() => api?.stop());

const team = (method: 'GET' | 'POST', asked: Asked, what: string, body?: object) =>
  api.call(method, `/api/v1/runs/${asked.runId}/${what}`, body, key);
const show = (asked: Asked, ...content: object[]) => team('POST', asked, 'interactions', { content });

async function handedOver(text = 'Book me a flight', channelId?: string): Promise<Asked> {
  const asked = await api.ask(text, { agentId, ...(channelId !== undefined && { channelId }) });
  await eventually(async () => expect(await api.types(asked.runId)).toContain('RunHandedOver'));
  return asked;
}

const call = { type: 'tool_call', tool_name: 'flights', tool_call_id: 'call_1', tool_args: { to: 'Oslo' } };
const update = (sequence: number, ...states: string[]) => ({
  type: 'tool_call_update',
  tool_name: 'flights',
  tool_call_id: 'call_1',
  sequence,
  update: { kind: 'checklist', items: states.map((state, index) => ({ label: `step ${index}`, state })) },
});
const result = { ...call, type: 'tool_call_result', tool_result: { flights: 2 }, status: 'success' };
const payment = {
  type: 'request_payment',
  accepted_funds: [{ amount: '120.00', currency: 'EUR' }],
  recipient: 'airline',
  deadline_seconds: 600,
};

/** The updates of running calls that a reader gets. */
async function updatesIn(channelId: string): Promise<Json[]> {
  const url = `/api/v1/channels/${channelId}/interactions?include_tool_call_updates=true`;
  const { items } = (await api.call('GET', url)).json;
  return items.filter((one: Json) => one.content_role === 'tool_call_update');
}
/** Ids of the calls of a run that wait for a result. */
async function openCallsOf({ runId }: Asked): Promise<string[]> {
  const run = await api.documents.api.features.runs.inLog(api.organizationId, runId);
  return (run?.openCalls ?? []).map(({ id }) => id);
}
const rolesIn = async (asked: Asked) => (await api.tree(asked)).map((one) => one.content_role);

describe('a program of an external agent', () => {
  it('shows a tool call, a checklist, its result and a payment request below the message, each once', async () => {
    const asked = await handedOver();
    const called = await show(asked, call);
    expect(called).toMatchObject({
      status: 200,
      json: {
        interaction: {
          content_role: 'tool_call',
          participant: { type: 'agent', agent_id: agentId },
          parent_span_id: asked.message.span_id,
          interaction_id: asked.message.interaction_id,
          content: [{ tool_call_id: `${asked.runId}-call_1`, tool_args: { to: 'Oslo' } }],
          metadata: { run_id: asked.runId },
        },
      },
    });
    expect((await show(asked, call)).json.interaction.id).toBe(called.json.interaction.id);
    expect(await show(asked, update(1, 'active', 'pending'))).toMatchObject({ status: 200 });
    expect(await show(asked, update(2, 'done', 'active'))).toMatchObject({ status: 200 });
    expect(await updatesIn(asked.channelId)).toMatchObject([
      { content: [{ sequence: 2, update: { items: [{ state: 'done' }, { state: 'active' }] } }] },
    ]);
    const shown = await show(asked, result);
    expect(shown.json.interaction).toMatchObject({ parent_span_id: called.json.interaction.span_id });
    expect((await show(asked, result)).json.interaction.id).toBe(shown.json.interaction.id);
    expect(await show(asked, payment)).toMatchObject({ status: 200 });
    expect(await team('POST', asked, 'response', { text: 'Booked.' })).toMatchObject({ status: 200 });
    await api.ended(asked.runId);
    expect(await rolesIn(asked)).toEqual(['tool_call', 'tool_call_result', 'agent_response', 'agent_response']);
  });

  it('gets no reader the last update of a call that has its result, nor a late one', async () => {
    const asked = await handedOver();
    await show(asked, call);
    await show(asked, update(1, 'active'));
    await show(asked, result);
    expect(await updatesIn(asked.channelId)).toEqual([]);
    expect(await show(asked, update(2, 'done'))).toMatchObject({ status: 200 });
    expect(await updatesIn(asked.channelId)).toEqual([]);
    await team('POST', asked, 'response', { text: 'Booked.' });
  });

  it('reads payments and custom content in the conversation, also those without words', async () => {
    const first = await handedOver('How much?');
    await show(first, payment);
    await team('POST', first, 'response', { text: 'Pay, please.' });
    await api.ended(first.runId);
    const paid = {
      type: 'commit_payment',
      funds: payment.accepted_funds[0],
      recipient: 'airline',
      transaction_id: 't',
    };
    await api.call('POST', `/api/v1/channels/${first.channelId}/interactions`, { content: [paid] });
    const asked = await handedOver('Done?', first.channelId);
    const { messages } = (await team('GET', asked, 'conversation')).json;
    expect(messages).toMatchObject([
      { role: 'user', text: 'How much?' },
      { role: 'assistant', text: '', content: [{ type: 'request_payment', recipient: 'airline' }] },
      { role: 'assistant', text: 'Pay, please.' },
      { role: 'user', text: '', content: [{ type: 'commit_payment', transaction_id: 't' }] },
      { role: 'user', text: 'Done?' },
    ]);
    await team('POST', asked, 'response', { text: 'Yes.' });
  });

  it('finds what a crash left open, and nothing of other agents', async () => {
    const asked = await handedOver();
    const list = (query: string, of = agentId) => api.call('GET', `/api/v1/agents/${of}/runs?${query}`, undefined, key);
    const open = await list('status=running');
    expect(open).toMatchObject({ status: 200, json: { items: [{ id: asked.runId, status: 'running' }] } });
    await team('POST', asked, 'response', { text: 'Booked.' });
    await api.ended(asked.runId);
    expect((await list('status=running')).json.items).toEqual([]);
    expect((await list('')).json.items[0]).toMatchObject({ id: asked.runId, status: 'completed' });
    expect((await list('', api.agentId)).status).toBe(404);
    expect((await list('status=lost')).status).toBe(422);
  });

  it('leaves no call without a result, however its run ends', async () => {
    const ends = {
      cancelled: (asked: Asked) => api.call('POST', `/api/v1/runs/${asked.runId}/cancel`),
      failed: (asked: Asked) => team('POST', asked, 'failure', { message: 'the airline is closed' }),
      completed: (asked: Asked) => team('POST', asked, 'response', { text: 'Later.' }),
    };
    const why = {
      cancelled: 'the run was cancelled',
      failed: 'the airline is closed',
      completed: 'the run ended without a result of the call',
    };
    for (const how of ['cancelled', 'failed', 'completed'] as const) {
      const asked = await handedOver();
      const { json: called } = await show(asked, call);
      await show(asked, update(1, 'active'));
      expect((await ends[how](asked)).status).toBe(200);
      await eventually(async () => {
        const results = (await api.tree(asked)).filter((one) => one.content_role === 'tool_call_result');
        expect(results).toMatchObject([
          {
            parent_span_id: called.interaction.span_id,
            content: [{ tool_name: 'flights', status: 'failure', tool_result: { error: why[how] } }],
          },
        ]);
      });
      await eventually(async () => expect(await updatesIn(asked.channelId)).toEqual([]));
      expect(await show(asked, { ...call, tool_call_id: 'call_2' })).toMatchObject({ status: 409 });
    }
  });

  it('is answered once by two processes that took it at the same time, as after a restart that left the first one', async () => {
    const asked = await handedOver();
    const twice = (one: object, other: object) => Promise.all([show(asked, one), show(asked, other)]);
    for (const posts of [
      await twice(call, { ...call, tool_args: {} }),
      await twice(result, { ...result, tool_result: {} }),
    ]) {
      expect(posts.map(({ status }) => status)).toEqual([200, 200]);
      expect(posts[0].json).toEqual(posts[1].json);
    }
    const once = { 'idempotency-key': `${asked.runId}-payment` };
    const url = `/api/v1/runs/${asked.runId}/interactions`;
    const paid = () => api.documents.call('POST', url, { content: [payment] }, once, key);
    for (const { status } of await Promise.all([paid(), paid()])) expect([200, 409]).toContain(status);
    expect(await paid()).toMatchObject({ status: 200 });
    const answers = await Promise.all(
      ['Booked.', 'Sold out.'].map((text) => team('POST', asked, 'response', { text })),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409]);
    await api.ended(asked.runId);
    expect(await rolesIn(asked)).toEqual(['tool_call', 'tool_call_result', 'agent_response', 'agent_response']);
    expect(await openCallsOf(asked)).toEqual([]);
  });

  it('leaves no call without a result that arrives while its run is cancelled', async () => {
    const runs = await Promise.all(Array.from({ length: 8 }, () => handedOver()));
    await Promise.all(
      runs.flatMap((asked) => [
        ...[1, 2, 3].map((n) => show(asked, { ...call, tool_call_id: `call_${n}` })),
        api.call('POST', `/api/v1/runs/${asked.runId}/cancel`),
      ]),
    );
    for (const asked of runs) {
      await eventually(async () => {
        expect((await api.run(asked.runId)).status).toBe('cancelled');
        const roles = await rolesIn(asked);
        const count = (role: string) => roles.filter((one) => one === role).length;
        expect([count('agent_response'), count('tool_call_result')]).toEqual([1, count('tool_call')]);
      });
    }
  });

  it('keeps no call open by a request that arrives late, and none that the channel has refused', async () => {
    const asked = await handedOver();
    const numbered = (index: number) => ({ ...call, tool_call_id: `call_${index}` });
    for (let index = 0; index < 3; index++) {
      const called = await show(asked, numbered(index));
      await show(asked, { ...result, tool_call_id: `call_${index}` });
      // As after a timeout, whose request a proxy delivers all the same.
      expect((await show(asked, numbered(index))).json).toEqual(called.json);
    }
    expect(await openCallsOf(asked)).toEqual([]);
    await api.call('POST', `/api/v1/channels/${asked.channelId}/archive`);
    for (let index = 3; index < 5; index++) {
      expect(await show(asked, numbered(index))).toMatchObject({ status: 409, json: { code: 'archived' } });
    }
    expect(await openCallsOf(asked)).toEqual([]);
  });

  it('shows no call, update or answer of a cancelled run without saying that it was cancelled', async () => {
    const asked = await handedOver();
    await team('POST', asked, 'deltas', { text: 'I have fou' });
    await api.call('POST', `/api/v1/runs/${asked.runId}/cancel`);
    await eventually(async () =>
      expect(await api.response(asked)).toMatchObject({
        complete: true,
        content: [{ text: 'I have fou' }],
        metadata: { run_id: asked.runId, finish_reason: 'cancelled' },
      }),
    );
  });

  it('gets the reason why a post is refused, and the channel shows nothing', async () => {
    const asked = await handedOver();
    const unknown = { ...result, tool_call_id: 'call_9' };
    for (const [content, loc] of [
      [[unknown], ['body', 'content', 0, 'tool_call_id']],
      [[{ ...update(1, 'done'), tool_call_id: 'call_9' }], ['body', 'content', 0, 'tool_call_id']],
      [[{ ...call, tool_call_id: null }], ['body', 'content', 0, 'tool_call_id']],
      [
        [call, call],
        ['body', 'content'],
      ],
      [
        [{ type: 'text', text: 'x' }, call],
        ['body', 'content', 1, 'type'],
      ],
      [[{ type: 'reject_payment', reason: 'x' }], ['body', 'content', 0, 'type']],
      [[], ['body', 'content']],
    ] as const) {
      const refused = await show(asked, ...content);
      expect(refused).toMatchObject({ status: 422, json: { detail: [{ loc }] } });
    }
    expect(await rolesIn(asked)).toEqual([]);
    await team('POST', asked, 'response', { text: 'Sorry.' });
    expect(await show(asked, call)).toMatchObject({ status: 409, json: { code: 'run_answered' } });
  });
});

it('a key with the scope agent is refused by every route but those of its agent', async () => {
  const { paths } = (await api.call('GET', '/openapi.json')).json;
  const open: string[] = [];
  for (const [path, operations] of Object.entries<Json>(paths)) {
    for (const [method, operation] of Object.entries<Json>(operations)) {
      if (!/^(get|post|put|patch|delete)$/.test(method) || operation.security?.length === 0) continue;
      const url = path.replaceAll(/\{[^}]+\}/g, newId());
      const { status, json } = await api.call(
        method.toUpperCase() as 'GET',
        url,
        method === 'get' ? undefined : {},
        key,
      );
      if (status === 403 && json.code === 'missing_scope') continue;
      open.push(`${method} ${path}`);
    }
  }
  expect(open.toSorted()).toEqual([
    'get /api/v1/agents/{id}/invocations/events',
    'get /api/v1/agents/{id}/runs',
    'get /api/v1/runs/{id}/conversation',
    'post /api/v1/runs/{id}/deltas',
    'post /api/v1/runs/{id}/failure',
    'post /api/v1/runs/{id}/interactions',
    'post /api/v1/runs/{id}/response',
  ]);
});
