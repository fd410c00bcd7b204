/** Events that cannot be applied: of a known type with a bad body, of a type that nobody declares, or by our mistake. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import { NO_EVENTS, type StreamRevision } from '#libs/kernel/event.ts';
import type { EventToAppend } from '#libs/platform/eventstore/index.ts';
import { CHANNEL_READ_MODEL, channelProjection } from '#libs/features/channels/index.ts';
import { entityKeys, Projector } from '#libs/platform/readmodel/index.ts';
import { composeReadModels, type ReadModels } from '#services/features.ts';
import { ProjectionLoop } from '#services/projector/projection-loop.ts';
import { rebuild } from '#services/projector/rebuild.ts';
import { projectionProbe } from '#services/projector/role.ts';
import { PLAIN_CHANNEL } from '#test/support/commands.ts';
import { eventually } from '#test/support/eventually.ts';
import { startParleyProcess } from '#test/support/parley-process.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import { nodeWith } from '#test/support/redis-commands.ts';

let test: TestPlatform;
let models: ReadModels;

beforeAll(async () => {
  test = await startTestPlatform();
  models = composeReadModels(test.platform);
});
afterAll(() => test.stop());

const created = { ...PLAIN_CHANNEL, name: 'With damage' };
const posted = {
  participant: { type: 'system' },
  content: [{ type: 'text', text: 'hello' }],
  contentRole: 'user_message',
  complete: false,
  metadata: null,
  invocationConfig: null,
  turnId: null,
  spanId: 'span-1',
  parentSpanId: null,
  depth: 1,
  organizationApplication: null,
};
const reaction = {
  sequence: 2,
  emoji: '👍',
  reactor: { type: 'user', id: 'u', name: 'Ada' },
  target: { role: 'user', senderId: null },
};

/** Bypasses the codecs, as damage or a foreign program would. */
async function plant(
  stream: string,
  expected: StreamRevision,
  events: readonly (readonly [string, object])[],
  organizationId: string,
): Promise<StreamRevision> {
  const toAppend = events.map(([type, data]): EventToAppend => {
    const id = newId();
    const actor = { type: 'system' as const, id: 'damage' };
    const metadata = { at: new Date().toISOString(), organizationId, actor, commandId: id };
    return { id, type, data, metadata: { ...metadata, $correlationId: id, $causationId: id } };
  });
  const result = await test.platform.store.append(stream, expected, toAppend);
  if (result.kind !== 'appended') throw new Error(`${stream} is not at ${expected}`);
  return result.revision;
}

async function reflected(organizationId: string, channelId: string): Promise<number> {
  const { revision } = entityKeys(CHANNEL_READ_MODEL, organizationId, channelId);
  const stored = await nodeWith(test.platform.redis, revision).get(revision);
  return stored === null ? -1 : Number(stored);
}

/** A log of its own for every case: a projector that has halted goes no further, whatever comes after. */
async function emptyLog(): Promise<void> {
  await test.stop();
  test = await startTestPlatform();
  models = composeReadModels(test.platform);
}

function runLoop({ projector, state }: Pick<ReadModels, 'projector' | 'state'> = models) {
  const problems: unknown[] = [];
  const abort = new AbortController();
  const { feed } = test.platform;
  const loop = new ProjectionLoop({ feed, projector, state, onProblem: (error) => problems.push(error) });
  const ended = loop.run(abort.signal);
  return { loop, problems, ended, stop: async () => (abort.abort(), await ended) };
}

const DAMAGED: readonly (readonly [string, object])[] = [
  ['InteractionPosted.v1', { ...posted, spanId: 7 }],
  ['InteractionContentAppended.v1', { sequence: 2, content: 'more' }],
  ['InteractionCompleted.v1', { sequence: 0, content: null }],
  ['InteractionCompleted.v2', { sequence: 2, content: null }],
  ['InteractionFailed.v1', { sequence: 2 }],
  ['ReactionAdded.v1', { ...reaction, reactor: 'Ada' }],
  ['ReactionRemoved.v1', reaction],
  ['ReadReceiptRecorded.v1', { sequence: 2, agentId: 'agent-1' }],
  ['MentionInvitePromptDismissed.v1', { userId: 'u' }],
];

describe('an event of a known type with a bad body', () => {
  it.each(DAMAGED)('halts the projector at exactly that event: %s', async (type, data) => {
    await emptyLog();
    const organizationId = newId();
    const [before, damaged, after] = [newId(), newId(), newId()];
    await plant(`channel-${before}`, NO_EVENTS, [['ChannelCreated.v1', { ...created, id: before }]], organizationId);
    const good = [
      ['ChannelCreated.v1', { ...created, id: damaged }],
      ['InteractionPosted.v1', posted],
    ] as const;
    const at = await plant(`channel-${damaged}`, NO_EVENTS, good, organizationId);
    await plant(
      `channel-${damaged}`,
      at,
      [
        [type, data],
        ['ChannelRenamed.v1', { name: 'Later' }],
      ],
      organizationId,
    );
    await plant(`channel-${after}`, NO_EVENTS, [['ChannelCreated.v1', { ...created, id: after }]], organizationId);

    // And again after a restart: nothing but mending helps.
    for (let start = 0; start < 2; start++) {
      const { loop, problems, ended } = runLoop();
      await ended;
      const where = `${type} channel-${damaged}@2`;
      expect(loop.progress).toMatchObject({ phase: 'halted', problem: expect.stringContaining(where) });
      expect(problems).toHaveLength(1);
      expect(await reflected(organizationId, before)).toBe(0);
      expect(await reflected(organizationId, damaged)).toBe(1);
      expect(await reflected(organizationId, after)).toBe(-1);
      expect(await models.state.isComplete()).toBe(false);
    }
  });
});

describe('a projection that throws an error that no store caused', () => {
  /** Fails at each renaming, a given number of times. */
  function failing(times: number): Projector {
    let failures = 0;
    const planted: typeof channelProjection = {
      ...channelProjection,
      project(run, keys) {
        if (run.events.some(({ type }) => type === 'ChannelRenamed.v1') && failures++ < times) {
          throw new TypeError('a mistake of ours');
        }
        return channelProjection.project(run, keys);
      },
    };
    return new Projector(test.platform.store, test.platform.readModel, [planted]);
  }

  const renamed = async (organizationId: string, channelId: string): Promise<void> => {
    const events = [
      ['ChannelCreated.v1', { ...created, id: channelId }],
      ['ChannelRenamed.v1', { name: 'Renamed' }],
      ['ChannelRenamed.v1', { name: 'Later' }],
    ] as const;
    await plant(`channel-${channelId}`, NO_EVENTS, events, organizationId);
  };

  it('is retried, and halts the projector at the event where it keeps failing, which health names', async () => {
    await emptyLog();
    const [organizationId, channelId] = [newId(), newId()];
    await renamed(organizationId, channelId);
    const { loop, problems, ended } = runLoop({ ...models, projector: failing(Infinity) });
    await ended;
    const where = `ChannelRenamed.v1 channel-${channelId}@1 cannot be applied: TypeError: a mistake of ours`;
    expect(problems.map(String)).toEqual([
      'TypeError: a mistake of ours',
      'TypeError: a mistake of ours',
      `CorruptEventError: ${where}`,
    ]);
    expect(await projectionProbe(loop, test.platform.feed).check()).toMatchObject({
      ok: false,
      detail: { phase: 'halted', problem: where },
    });
    expect(await reflected(organizationId, channelId)).toBe(0);
    expect(await models.state.isComplete()).toBe(false);
    // A rebuild says it, too, instead of going on for ever.
    const parts = { feed: test.platform.feed, state: models.state, projector: failing(Infinity) };
    await expect(rebuild(parts, { signal: AbortSignal.timeout(60_000) })).rejects.toThrow(where);
  });

  it('continues when it no longer fails', async () => {
    await emptyLog();
    const [organizationId, channelId] = [newId(), newId()];
    await renamed(organizationId, channelId);
    // The batch as a whole and the event alone, twice.
    const { loop, problems, stop } = runLoop({ ...models, projector: failing(4) });
    await eventually(() => loop.progress.phase === 'live', { timeoutMs: 60_000 });
    await stop();
    expect(problems.map(String)).toEqual(['TypeError: a mistake of ours', 'TypeError: a mistake of ours']);
    expect(await reflected(organizationId, channelId)).toBe(2);
  });
});

describe('an event of an unknown type', () => {
  it('is skipped and counted, and later events are applied', async () => {
    await emptyLog();
    const [organizationId, channelId] = [newId(), newId()];
    const skippedBefore = new Map(channelProjection.codec.skipped);
    const events = [
      ['ChannelCreated.v1', { ...created, id: channelId }],
      ['InteractionPosted.v1', posted],
      ['InteractionTranslated.v1', { sequence: 2 }],
      ['ReactionAdded.v2', { at: 'another time' }],
      ['ReactionAdded.v1', reaction],
    ] as const;
    await plant(`channel-${channelId}`, NO_EVENTS, events, organizationId);
    const { loop, problems, stop } = runLoop();
    await eventually(() => loop.progress.phase === 'live');
    await stop();
    expect(problems).toEqual([]);
    expect(await reflected(organizationId, channelId)).toBe(4);
    for (const type of ['InteractionTranslated.v1', 'ReactionAdded.v2']) {
      expect(channelProjection.codec.skipped.get(type)).toBe((skippedBefore.get(type) ?? 0) + 1);
    }
  });
});

describe('a running Parley whose log is damaged', () => {
  it('reports that in health and log, and continues to serve what it can', async () => {
    await emptyLog();
    const stores = { eventstoreUrl: test.eventStore.url, redisUrl: test.redis.url };
    const parley = await startParleyProcess(stores);
    try {
      await parley.ready();
      const [newer, bad] = [newId(), newId()];
      await plant(`channel-${newer}`, NO_EVENTS, [['ChannelFramed.v1', {}]], newId());
      await eventually(async () =>
        /^parley_events_skipped_total\{reason="unknown_type"\} [1-9]/m.test((await parley.api.get('/metrics')).text),
      );
      await parley.ready();

      const events = [
        ['ChannelCreated.v1', { ...created, id: bad }],
        ['InteractionPosted.v1', { ...posted, content: null }],
      ] as const;
      await plant(`channel-${bad}`, NO_EVENTS, events, newId());
      const health = await eventually(async () => {
        const { status, text } = await parley.api.get('/health/ready');
        return status === 503 && text.includes('"phase":"halted"') && text;
      });
      expect(health).toContain(`InteractionPosted.v1 channel-${bad}@1`);
      // What a process says arrives when it arrives.
      await eventually(() => parley.output().includes('the projector has halted at an event that it cannot apply'));

      const channel = await parley.api.post('/api/v1/channels', { name: 'In good order', participants: [] });
      expect(channel.status).toBe(200);
      const { id } = channel.json() as { readonly id: string };
      expect((await parley.api.get(`/api/v1/channels/${id}`)).json()).toMatchObject({ name: 'In good order' });
    } finally {
      await parley.stop();
    }
  });
});
