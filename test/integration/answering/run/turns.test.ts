/** Messages that arrive while an agent answers another one in the same channel. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

import { MAX_WAITING_RUNS, runLaneId } from '#libs/features/answering/run/run-lane.ts';
import { decideShowEnd } from '#libs/features/answering/run/run-ends.ts';
import { streamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { eventually } from '#test/support/eventually.ts';
import { logEvent } from '#test/support/log-events.ts';
import {
  type Answer,
  type ModelRequest,
  type ModelServer,
  says,
  saysThen,
  startModelServer,
} from '#test/support/model-server.ts';
import { type Asked, type Json, RunsApi } from '#test/support/runs-api.ts';

let server: ModelServer;
let api: RunsApi;

beforeAll(async () => {
  server = await startModelServer();
  const limits = { totalMs: 170_000, firstPartMs: 170_000, idleMs: 170_000, maxAttempts: 1 };
  api = await RunsApi.start({ model: { baseUrl: server.baseUrl, name: 'small', limits } });
});
afterAll(async () => {
  await api?.stop();
  await server?.stop();
});

/** The message that is answered: it is joined with those before it that have no answer. */
function lastOf({ body }: ModelRequest): string {
  return body.messages.at(-1)?.content?.split('\n\n').at(-1) ?? '';
}

/** Answers `One?` with `Re: One?`; the first message only once it is released. */
function answersHolding(first: string): { readonly answer: Answer; release(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return {
    async answer(response, request) {
      const message = lastOf(request);
      if (message === first) await promise;
      await says({ text: [`Re: ${message}`] })(response, request);
    },
    release: () => resolve(),
  };
}

/** Its agent has a tool, so its responses are posted with their first words. */
async function newChannel(settings: object = {}) {
  const { id: agentId } = await api.newAgent({ name: 'Ada', features: { general_web_search: true } });
  const { json } = await api.call('POST', '/api/v1/channels', { name: 'Questions', ...settings });
  const channelId: string = json.id;
  return { channelId, ask: (text: string, depth = 0) => api.ask(text, { agentId, channelId, depth }) };
}

/** Until the run has reached this event. */
const reached = (asked: Asked, type: string): Promise<void> =>
  eventually(async () => expect(await api.types(asked.runId)).toContain(type));

/** Until so many runs have left their lane. */
const left = (lane: Pick<Asked, 'channelId' | 'agentId'>, count: number): Promise<void> =>
  eventually(
    async () => {
      const types = await api.documents.types(`runlane-${runLaneId(lane)}`);
      expect(types.filter((type) => type === 'RunLeft.v1')).toHaveLength(count);
    },
    { timeoutMs: 50_000 },
  );

/** Runs enter the lane, as by workers that have stalled since they found that the runs were to begin. */
async function enterLane(
  lane: Pick<Asked, 'channelId' | 'agentId'>,
  entries: readonly { readonly runId: string; readonly sequence: number }[],
): Promise<void> {
  const { organizationId, platform } = api;
  const id = runLaneId(lane);
  const events = entries.map((entry) => {
    const event = logEvent({ id, ...entry }, 'RunEntered.v1');
    return { ...event, metadata: { ...event.metadata, organizationId } };
  });
  const last = streamRevision((await api.documents.events(`runlane-${id}`)).length - 1);
  expect((await platform.store.append(`runlane-${id}`, last, events)).kind).toBe('appended');
}

const requestsFor = (message: string) =>
  server.requests.filter((request) => lastOf(request) === message).map(({ body }) => body.messages);

/** The messages and answers of a channel, in order, without responses that failed before they had text. */
async function textsIn(channelId: string): Promise<string[]> {
  const { json } = await api.call('GET', `/api/v1/channels/${channelId}/interactions?order=asc`);
  return json.items
    .filter(({ content_role: role }: Json) => role === 'user_message' || role === 'agent_response')
    .flatMap(({ content }: Json) => content.map(({ text }: Json) => text));
}

describe('a message that arrives during a run', () => {
  it('is answered after it, in the order of the messages, by a model that knows the answers', async () => {
    const { channelId, ask } = await newChannel();
    const { answer, release } = answersHolding('One?');
    server.script(answer);
    const one = await ask('One?');
    await eventually(() => requestsFor('One?').length > 0);
    const others = [await ask('Two?'), await ask('Three?')];
    for (const other of others) await reached(other, 'RunQueued');
    expect((await api.run(others[0]!.runId)).status).toBe('queued');
    expect(requestsFor('Two?')).toEqual([]);
    release();
    for (const asked of [one, ...others]) expect(await api.ended(asked.runId)).toMatchObject({ status: 'completed' });
    expect(await textsIn(channelId)).toEqual(['One?', 'Two?', 'Three?', 'Re: One?', 'Re: Two?', 'Re: Three?']);
    const said = requestsFor('Three?').at(-1)?.slice(1);
    expect(said?.map(({ content }) => content)).toEqual(['One?', 'Re: One?', 'Two?', 'Re: Two?', 'Three?']);
  });

  it('is the cause of what its own run does, however long that waited', async () => {
    const { channelId, ask } = await newChannel();
    const { answer, release } = answersHolding('One?');
    server.script(answer);
    const runs = [await ask('One?'), await ask('Two?'), await ask('Three?')];
    for (const waiting of runs.slice(1)) await reached(waiting, 'RunQueued');
    release();
    for (const { runId } of runs) await api.ended(runId);
    const shown = await Array.fromAsync(api.platform.store.readStream(`channel-${channelId}`));
    for (const { runId, message } of runs) {
      const own = await Array.fromAsync(api.platform.store.readStream(`run-${runId}`));
      const ofTurn = shown.filter(({ data }) => {
        const { turnId, contentRole } = data as Json;
        return turnId === message.interaction_id && contentRole !== 'user_message';
      });
      expect(ofTurn.map(({ type }) => type)).toContain('ReadReceiptRecorded.v1');
      const causes = [...own, ...ofTurn].map(({ metadata }) => (metadata as Json).$correlationId);
      // Each run was requested by a command with its own id.
      expect(new Set(causes)).toEqual(new Set([runId]));
    }
  });

  it('of another agent or in another channel does not wait', async () => {
    const { channelId, ask } = await newChannel();
    const { answer, release } = answersHolding('One?');
    server.script(answer);
    const one = await ask('One?');
    await eventually(() => requestsFor('One?').length > 0);
    const { id: other } = await api.newAgent({ name: 'Eve' });
    const free = [
      await api.ask('Two?', { channelId, agentId: other }),
      await api.ask('Two?', { agentId: one.agentId }),
    ];
    for (const { runId } of free) expect(await api.ended(runId)).toMatchObject({ status: 'completed' });
    expect(await api.types(one.runId)).not.toContain('RunCompleted');
    release();
    await api.ended(one.runId);
  });

  it('can be cancelled while it waits', async () => {
    const { channelId, ask } = await newChannel();
    const { answer, release } = answersHolding('First?');
    server.script(answer);
    await ask('First?');
    await eventually(() => requestsFor('First?').length > 0);
    const [second, third] = [await ask('Second?'), await ask('Third?')];
    for (const waiting of [second, third]) await reached(waiting, 'RunQueued');
    expect((await api.call('POST', `/api/v1/runs/${second.runId}/cancel`)).json).toMatchObject({ status: 'cancelled' });
    await reached(second, 'RunEndShown');
    release();
    expect(await api.ended(third.runId)).toMatchObject({ status: 'completed' });
    expect(await textsIn(channelId)).toEqual(['First?', 'Second?', 'Third?', 'Re: First?', 'Re: Third?']);
  });
});

describe('a message that arrives during a run, in a channel that restarts', () => {
  const restarting = { run_concurrency: 'restart' };

  it('cancels the run, keeps what it has written, and is answered by a model that knows it', async () => {
    const { channelId, ask } = await newChannel(restarting);
    server.script(
      saysThen({ text: ['It opens ', 'at'] }, () => undefined),
      says({ text: ['At nine.'] }),
    );
    const when = await ask('When does it open?');
    const drafts = () => api.documents.api.features.channels.drafts.current(api.organizationId, channelId);
    await eventually(async () => expect(JSON.stringify(await drafts())).toContain('It opens at'));
    const summer = await ask('And in summer?');
    expect(await api.ended(summer.runId)).toMatchObject({ status: 'completed' });
    expect(await api.run(when.runId)).toMatchObject({ status: 'cancelled' });
    const texts = ['When does it open?', 'It opens at', 'And in summer?', 'At nine.'];
    await eventually(async () => expect(await textsIn(channelId)).toEqual(texts));
    const said = requestsFor('And in summer?').at(-1)?.slice(1);
    expect(said?.map(({ content }) => content)).toEqual(texts.slice(0, -1));
  });

  it('of an agent waits as in other channels, and is replaced as all others by the next message of a user', async () => {
    const { channelId, ask } = await newChannel();
    const { answer, release } = answersHolding('User?');
    server.script(answer);
    const user = await ask('User?');
    await eventually(() => requestsFor('User?').length > 0);
    const patched = await api.call('PATCH', `/api/v1/channels/${channelId}`, restarting);
    expect(patched).toMatchObject({ status: 200, json: restarting });
    const agent = await ask('Agent?', 1);
    await reached(agent, 'RunQueued');
    expect(await api.types(user.runId)).not.toContain('RunCancelled');
    const next = await ask('Next?');
    expect(await api.ended(next.runId)).toMatchObject({ status: 'completed' });
    for (const { runId } of [user, agent]) expect(await api.ended(runId)).toMatchObject({ status: 'cancelled' });
    await eventually(async () => expect(await textsIn(channelId)).toEqual(['User?', 'Agent?', 'Next?', 'Re: Next?']));
    release();
  });

  it('is answered once, and no earlier one is, whenever workers die', async () => {
    const { channelId, ask } = await newChannel(restarting);
    server.script(answersHolding('nothing').answer);
    const [first, late, last] = await api.withoutWorker(async () => {
      const runs = [await ask('First!'), await ask('Late!'), await ask('Last!')] as const;
      const [first, late, last] = runs;
      const attempt = async ({ runId }: Asked) => (await api.stepOf(runId, 0))?.attempt();
      await attempt(first);
      const { runs: commands } = api.documents.api.features;
      const cancel = vi.spyOn(commands, 'update').mockRejectedValueOnce(new Error('killed'));
      expect(await attempt(last)).toMatchObject({ kind: 'again' });
      cancel.mockRestore();
      expect(await api.types(first.runId)).toEqual(['RunRequested', 'RunClaimed', 'StepStarted']);
      await (await api.stepOf(late.runId, 0))?.diesBeforeItsOutcome();
      await attempt(late);
      expect(await api.types(late.runId)).toEqual(['RunRequested', 'RunCancelled']);
      await (await api.stepOf(last.runId, 0))?.diesBeforeItsOutcome();
      expect(await api.types(first.runId)).toEqual(['RunRequested', 'RunClaimed', 'StepStarted', 'RunCancelled']);
      await attempt(last);
      expect(await api.types(last.runId)).toEqual(['RunRequested', 'RunQueued']);
      return runs;
    });
    expect(await api.ended(last.runId)).toMatchObject({ status: 'completed' });
    for (const { runId } of [first, late]) expect(await api.run(runId)).toMatchObject({ status: 'cancelled' });
    await eventually(async () => expect(await textsIn(channelId)).toEqual(['First!', 'Late!', 'Last!', 'Re: Last!']));
    expect([first, late, last].map(({ text }) => requestsFor(text).length)).toEqual([0, 0, 1]);
  });
});

describe('workers that die', () => {
  it('leave no run waiting behind one whose end an earlier version of Parley has shown', async () => {
    const { ask } = await newChannel();
    server.script(answersHolding('nothing').answer);
    const [first, second] = await api.withoutWorker(async () => {
      const runs = [await ask('First?'), await ask('Second?')] as const;
      for (const { runId } of runs) await (await api.stepOf(runId, 0))?.attempt();
      expect(await api.types(runs[1].runId)).toEqual(['RunRequested', 'RunQueued']);
      await api.call('POST', `/api/v1/runs/${runs[0].runId}/cancel`);
      const { organizationId } = api;
      const context = { commandId: newId(), organizationId, actor: { type: 'system', id: 'test' } as const };
      const { runs: commands } = api.documents.api.features;
      await commands.update({ ...context, at: new Date().toISOString() }, runs[0].runId, decideShowEnd);
      const shown = (await api.types(runs[0].runId)).indexOf('RunEndShown');
      await (await api.stepOf(runs[0].runId, shown, 'run-ends'))?.attempt();
      expect(await api.types(runs[1].runId)).toEqual(['RunRequested', 'RunQueued', 'RunAdmitted']);
      return runs;
    });
    expect(await api.ended(second.runId)).toMatchObject({ status: 'completed' });
    expect(await api.run(first.runId)).toMatchObject({ status: 'cancelled' });
  });

  it('leave no run waiting behind one that was cancelled while its worker entered it', async () => {
    const { channelId, ask } = await newChannel();
    const { answer, release } = answersHolding('Before?');
    server.script(answer);
    const first = await ask('Before?');
    await eventually(() => requestsFor('Before?').length > 0);
    const cancelled = await ask('Second?');
    await reached(cancelled, 'RunQueued');
    expect((await api.call('POST', `/api/v1/runs/${cancelled.runId}/cancel`)).status).toBe(200);
    await left(first, 1);
    await enterLane(first, [{ runId: cancelled.runId, sequence: 1 }]);
    const third = await ask('Third?');
    await reached(third, 'RunQueued');
    release();
    expect(await api.ended(third.runId)).toMatchObject({ status: 'completed' });
    expect(await textsIn(channelId)).toEqual(['Before?', 'Second?', 'Third?', 'Re: Before?', 'Re: Third?']);
  });

  it('leave no run waiting, and no message answered twice', async () => {
    const { channelId, ask } = await newChannel();
    server.script(answersHolding('nothing').answer);
    const asked = await api.withoutWorker(async () => {
      const runs = [await ask('A?'), await ask('B?'), await ask('C?')];
      /** Every event is handled twice, the second time by a worker that knows nothing of the first. */
      const drive = async ({ runId }: Asked): Promise<void> => {
        for (let step = await api.stepOf(runId, 0); step; step = await api.stepOf(runId, step.revision + 1)) {
          await step.diesBeforeItsOutcome();
          await step.attempt();
        }
      };
      for (const run of runs) await (await api.stepOf(run.runId, 0))?.diesBeforeItsOutcome();
      for (const run of runs.slice(1)) await (await api.stepOf(run.runId, 0))?.attempt();
      await drive(runs[0]!);
      expect((await api.types(runs[0]!.runId)).at(-1)).toBe('RunCompleted');
      for (const run of runs.slice(1)) expect(await api.types(run.runId)).toEqual(['RunRequested', 'RunQueued']);
      // Nothing has passed the turn on: the next message does.
      const late = await ask('D?');
      const requested = await api.stepOf(late.runId, 0);
      await requested?.diesBeforeItsOutcome();
      await requested?.attempt();
      expect(await api.types(runs[1]!.runId)).toEqual(['RunRequested', 'RunQueued', 'RunAdmitted']);
      expect(await api.types(late.runId)).toEqual(['RunRequested', 'RunQueued']);
      return [...runs, late];
    });
    for (const { runId } of asked) expect(await api.ended(runId)).toMatchObject({ status: 'completed' });
    const texts = ['A?', 'B?', 'C?', 'Re: A?', 'D?', 'Re: B?', 'Re: C?', 'Re: D?'];
    expect(await textsIn(channelId)).toEqual(texts);
  });
});

describe('messages that wait', () => {
  it('are bounded: beyond that, the agent does not answer', async () => {
    const { ask } = await newChannel();
    const { answer, release } = answersHolding('Busy?');
    server.script(answer);
    const first = await ask('Busy?');
    await eventually(() => requestsFor('Busy?').length > 0);
    await enterLane(
      first,
      Array.from({ length: MAX_WAITING_RUNS }, (_, index) => ({ runId: newId(), sequence: index + 1 })),
    );
    const { runId } = await ask('One too many?');
    expect(await api.ended(runId)).toMatchObject({ status: 'failed', error: { reason: 'queue_full' } });
    release();
    // None of those that waited exists: each leaves when its turn comes.
    await left(first, MAX_WAITING_RUNS + 1);
    const next = await ask('Still there?');
    expect(await api.ended(next.runId)).toMatchObject({ status: 'completed' });
  });
});
