/* A command whose first request got no answer is repeated after the state has changed. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { StreamRevision } from '#libs/kernel/event.ts';
import { derivedId, newId } from '#libs/kernel/ids.ts';
import type { Channels } from '#libs/features/channels/index.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import { ownSpan } from '#libs/features/channels/interaction/interaction.commands.ts';
import { RedisIdempotencyStore } from '#libs/platform/http/index.ts';
import { composeFeatures, type Features } from '#services/features.ts';
import { PLAIN_CHANNEL } from '#test/support/commands.ts';
import { readLog } from '#test/support/log-reader.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';

let test: TestPlatform;
let first: Channels;
let second: Channels;

beforeAll(async () => {
  test = await startTestPlatform();
  first = commandsOn(test.platform.store);
  second = commandsOn(test.platform.store);
});
afterAll(() => test.stop());

function commandsOn(store: EventStore): Channels {
  return composeFeatures({ ...test.platform, store }).channels;
}

const organizationId = newId();
let minutes = 0;

/** Every request has a time of its own, also a repeated one. */
function context(change: Partial<CommandContext> = {}): CommandContext {
  const at = new Date(Date.UTC(2026, 0, 1) + ++minutes * 60_000).toISOString();
  return { commandId: newId(), organizationId, actor: { type: 'service', id: 'test' }, at, ...change };
}

const again = (command: CommandContext): CommandContext =>
  context({ ...command, at: context().at, repeatedSinceMs: Date.now() });

async function createChannel(command = context(), commands = first) {
  const result = await commands.create(command, { id: command.commandId, ...PLAIN_CHANNEL, name: 'first' });
  if (!result.ok) throw new Error(`refused: ${result.rejection.reason}`);
  return result.entity;
}

const NOTICE = {
  participant: { type: 'system' },
  content: [],
  contentRole: 'channel_notification' as const,
  complete: true,
  metadata: null,
  invocationConfig: null,
  turnId: null,
  spanId: 'notice',
  parentSpanId: null,
  organizationApplication: null,
};
const SPAN_IS_NEW = { spanIsNew: true };

/** By default by a gateway with empty memory. */
function post(command: CommandContext, channelId: string, { channels } = composeFeatures(test.platform)) {
  const spanId = derivedId(command.commandId, 'span');
  return channels.interactions.post(command, channelId, { ...NOTICE, spanId }, SPAN_IS_NEW);
}

/** As a request finds it while it takes its key. */
async function spanAbsentAt(channelId: string, { commandId }: CommandContext): Promise<StreamRevision | undefined> {
  const keys = new RedisIdempotencyStore(test.platform.redis);
  const scope = { organizationId, principalId: 'test', key: newId() };
  const start = await keys.begin(scope, 'a request', ownSpan({ organizationId, channelId }, commandId));
  if (start.state !== 'started') throw new Error(start.state);
  await keys.abandon(scope, start.lease);
  return start.absentAt;
}

async function typesIn(id: string): Promise<string[]> {
  return (await readLog(test.eventStore.url, `channel-${id}`)).map(({ type }) => type);
}

describe('a repeated command', () => {
  it('is not run twice, though others have changed the channel since', async () => {
    const { id } = await createChannel();
    const command = context();
    await first.update(command, id, { name: 'mine' });
    await second.update(context(), id, { name: 'theirs' });
    expect(await second.update(again(command), id, { name: 'mine' })).toMatchObject({
      ok: true,
      revision: 2,
      entity: { name: 'theirs' },
    });
    expect(await typesIn(id)).toEqual(['ChannelCreated.v1', 'ChannelRenamed.v1', 'ChannelRenamed.v1']);
  });

  it('is searched for where its answer said that it is, not in all that was written since', async () => {
    const { id } = await createChannel();
    const command = context();
    const written = await first.update(command, id, { name: 'mine' });
    for (let n = 0; n < 20; n++) await first.update(context(), id, { name: `later ${n}` });
    const revisions: number[] = [];
    const { store } = test.platform;
    const counting: EventStore = {
      append: (...args) => store.append(...args),
      async *readStream(...args) {
        for await (const event of store.readStream(...args)) {
          if (args[1]?.direction === 'backwards') revisions.push(event.revision);
          yield event;
        }
      },
      ping: () => store.ping(),
      close: () => store.close(),
    };
    const revision = written.ok ? written.revision : -1;
    const repeatedPosition = { stream: `channel-${id}`, revision };
    const repeated = { ...again(command), repeatedPosition };
    const result = await commandsOn(counting).update(repeated, id, { name: 'mine' });
    expect(result).toMatchObject({ ok: true, revision: 21, entity: { name: 'later 19' } });
    expect(revisions).toEqual([1, 0]);
    // A position that does not help is no reason to run it twice, nor to lose what it writes.
    const other = context();
    const late = { ...again(other), repeatedPosition };
    expect(await second.update(late, id, { name: 'late' })).toMatchObject({ ok: true, isChanged: true, revision: 22 });
    expect(await typesIn(id)).toHaveLength(23);
  });

  it('is not refused because of its own effect', async () => {
    const { id } = await createChannel();
    const participant = { type: 'external_agent', participantId: newId(), agentMetadata: null } as const;
    await first.addParticipant(context(), id, participant);
    const removal = context();
    await first.removeParticipant(removal, id, participant.participantId);
    expect(await first.removeParticipant(again(removal), id, participant.participantId)).toMatchObject({ ok: true });
    const rename = { ...context(), ifMatch: { allows: (revision: number) => revision === 2 } };
    await first.update(rename, id, { name: 'renamed' });
    expect(await first.update(again(rename), id, { name: 'renamed' })).toMatchObject({ ok: true });
    expect(await typesIn(id)).toHaveLength(4);
  });

  it('is run if it was not, and refused if the state requires it', async () => {
    const { id } = await createChannel();
    expect(await second.update(again(context()), id, { name: 'late' })).toMatchObject({ ok: true, revision: 1 });
    expect(await second.update(again(context()), newId(), { name: 'late' })).toMatchObject({ ok: false });
    expect(await typesIn(id)).toEqual(['ChannelCreated.v1', 'ChannelRenamed.v1']);
  });

  it('answers the state of the log, not its own decision, when the first request arrives in between', async () => {
    const command = context();
    const { platform } = test;
    let created: Awaited<ReturnType<typeof createChannel>> | undefined;
    // The first request reaches the log between the second one's lookup and append.
    const store: EventStore = {
      append: async (...args) => {
        created ??= await createChannel(command);
        return platform.store.append(...args);
      },
      readStream: (...args) => platform.store.readStream(...args),
      ping: () => platform.store.ping(),
      close: () => platform.store.close(),
    };
    const channel = await createChannel(again(command), commandsOn(store));
    expect(channel).toEqual(created);
    expect(channel.createdAt).toBe(command.at);
    expect(await typesIn(command.commandId)).toEqual(['ChannelCreated.v1']);
  });

  it('answers the current interaction, when the first request and others arrive in between', async () => {
    const { id } = await createChannel();
    const { platform } = test;
    const [mine, theirs] = [composeFeatures(platform), composeFeatures(platform)];
    const begun = await mine.channels.interactions.post(context(), id, { ...NOTICE, complete: false }, SPAN_IS_NEW);
    expect(begun).toMatchObject({ ok: true, revision: 1 });
    const place = { channelId: id, sequence: 2 as never };
    const command = context();
    let isFirst = true;
    const store: EventStore = {
      append: async (...args) => {
        if (isFirst) {
          isFirst = false;
          await theirs.channels.interactions.append(context(), place, [{ type: 'text', text: 'theirs' }], 'operator');
          await mine.channels.interactions.append(command, place, [{ type: 'text', text: 'mine' }], 'operator');
        }
        return platform.store.append(...args);
      },
      readStream: (...args) => platform.store.readStream(...args),
      ping: () => platform.store.ping(),
      close: () => platform.store.close(),
    };
    const commands = composeFeatures({ ...platform, store }).channels.interactions;
    const result = await commands.append(again(command), place, [{ type: 'text', text: 'mine' }], 'operator');
    expect(result.ok && JSON.parse(String(result.document)).content).toEqual([
      { type: 'text', text: 'theirs' },
      { type: 'text', text: 'mine' },
    ]);
  });

  it('keeps commands that wait behind it in order', async () => {
    const { id } = await createChannel();
    const command = context();
    await first.update(command, id, { name: 'a' });
    const results = await Promise.all([
      first.update(context(), id, { name: 'b' }),
      first.update(again(command), id, { name: 'a' }),
      first.update(context(), id, { name: 'c' }),
    ]);
    expect(results).toMatchObject([
      { revision: 2, entity: { name: 'b' } },
      { revision: 2, entity: { name: 'b' } },
      { revision: 3, entity: { name: 'c' } },
    ]);
  });
});

/** A store that runs another action before its first append. */
function storeThatFirst(happens: () => Promise<unknown>): EventStore {
  const { store } = test.platform;
  let happened: Promise<unknown> | undefined;
  return {
    append: async (...args) => {
      await (happened ??= happens());
      return store.append(...args);
    },
    readStream: (...args) => store.readStream(...args),
    ping: () => store.ping(),
    close: () => store.close(),
  };
}

describe('a command with an idempotency key that Redis has forgotten', () => {
  it('is recognised by its events, by the process that wrote them and by others', async () => {
    const { id } = await createChannel();
    const command = context({ idempotencyKey: 'a key' });
    await first.update(command, id, { name: 'mine' });
    await first.update(context(), id, { name: 'theirs' });
    const forgotten = { ...command, at: context().at };
    for (const commands of [first, second, commandsOn(test.platform.store)]) {
      expect(await commands.update(forgotten, id, { name: 'mine' })).toMatchObject({ entity: { name: 'theirs' } });
    }
    expect(await typesIn(id)).toHaveLength(3);
  });

  it('is recognised by events that a conflict reveals', async () => {
    const { id } = await createChannel();
    // Both have the channel in memory, and the copy of one is out of date.
    await second.update(context({ idempotencyKey: 'another key' }), id, { name: 'second' });
    const command = context({ idempotencyKey: 'a key' });
    await first.update(command, id, { name: 'mine' });
    await first.update(context(), id, { name: 'theirs' });
    const results = await Promise.all([
      second.update(context({ idempotencyKey: 'a third key' }), id, { metaData: { n: 1 } }),
      second.update({ ...command, at: context().at }, id, { name: 'mine' }),
    ]);
    expect(results).toMatchObject([{ entity: { name: 'theirs' } }, { entity: { name: 'theirs' } }]);
    expect(await typesIn(id)).toHaveLength(5);
  });

  it('answers the state of the log when the first request arrives between the decision and the append', async () => {
    const command = context({ idempotencyKey: 'a key' });
    const again = { ...command, at: context().at };
    const { id } = await createChannel(again, commandsOn(storeThatFirst(() => createChannel(command, second))));
    const rename = context({ idempotencyKey: 'a key' });
    const late = commandsOn(storeThatFirst(() => second.update(rename, id, { name: 'mine' })));
    const answers = [
      await late.update({ ...rename, at: context().at }, id, { name: 'mine' }),
      // Its memory equals the log, too.
      await late.update(context(), id, { name: 'mine' }),
    ];
    expect(answers).toMatchObject([
      { revision: 1, entity: { createdAt: command.at, modified: rename.at } },
      { revision: 1, entity: { createdAt: command.at, modified: rename.at } },
    ]);
    expect(await typesIn(id)).toEqual(['ChannelCreated.v1', 'ChannelRenamed.v1']);
  });

  it('is created once when it is new', async () => {
    const command = context({ idempotencyKey: 'a key' });
    const { id } = await createChannel(command);
    const again = await createChannel({ ...command, at: context().at }, second);
    expect(again).toMatchObject({ id, createdAt: command.at });
    expect(await typesIn(id)).toEqual(['ChannelCreated.v1']);
  });

  it('posts nothing twice, though the read model lacked it when the key was taken', async () => {
    const { id } = await createChannel();
    const command = context({ idempotencyKey: 'a key' });
    // With the channel in memory.
    await first.update(context({ idempotencyKey: 'another' }), id, { name: 'renamed' });
    const absentAt = await spanAbsentAt(id, command);
    expect(absentAt).toBe(1);
    expect(await post(command, id)).toMatchObject({ revision: 2 });
    const again = { ...command, at: context().at, absentAt };
    expect(await post(again, id, { channels: first } as Features)).toMatchObject({ ok: true, revision: 2 });
    expect(await post(again, id)).toMatchObject({ ok: true, revision: 2 });
    expect(await spanAbsentAt(id, command)).toBeUndefined();
    expect(await typesIn(id)).toHaveLength(3);
  });

  it('posts nothing twice, however much has happened since', async () => {
    const { id } = await createChannel();
    const command = context({ idempotencyKey: 'a key' });
    const posted = await post(command, id);
    expect(posted).toMatchObject({ ok: true, revision: 1 });
    // More events than a lookup reads by default.
    const busy = composeFeatures(test.platform);
    for (let n = 0; n < 12; n++) {
      await Promise.all(Array.from({ length: 100 }, () => post(context(), id, busy)));
    }
    const forgotten = { ...command, at: context().at };
    const again = await post(forgotten, id);
    expect(again.ok && posted.ok && String(again.document) === String(posted.document)).toBe(true);
    expect((await typesIn(id)).filter((type) => type === 'InteractionPosted.v1')).toHaveLength(1_201);
  });
});
