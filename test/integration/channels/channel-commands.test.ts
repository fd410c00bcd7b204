import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import type { Channels } from '#libs/features/channels/index.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { composeFeatures } from '#services/features.ts';
import { PLAIN_CHANNEL, serviceCommand } from '#test/support/commands.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';

let test: TestPlatform;
let first: Channels;
let second: Channels;
let queries: Channels;

beforeAll(async () => {
  test = await startTestPlatform();
  // Two compositions share only the stores, like two gateways.
  const one = composeFeatures(test.platform);
  first = one.channels;
  second = composeFeatures(test.platform).channels;
  queries = one.channels;
});
afterAll(() => test.stop());

const organizationId = newId();

const context = (change: Partial<CommandContext> = {}): CommandContext => serviceCommand(organizationId, change);

async function createChannel(): Promise<string> {
  const command = context();
  const created = await first.create(command, { id: command.commandId, ...PLAIN_CHANNEL, name: 'first' });
  expect(created.ok).toBe(true);
  return command.commandId;
}

async function nameOf(id: string): Promise<unknown> {
  const document = await queries.channel(organizationId, id);
  return JSON.parse(document?.json.toString() ?? '{}').name;
}

describe('channel commands on real stores', () => {
  it('are visible to reads as soon as they were answered', async () => {
    const id = await createChannel();
    expect(await nameOf(id)).toBe('first');
    await first.update(context(), id, { name: 'second' });
    expect(await nameOf(id)).toBe('second');
  });

  it('are all kept, once, when two gateways send many at once', async () => {
    const id = await createChannel();
    const names = Array.from({ length: 40 }, (_, index) => `agent-${index}`);
    const results = await Promise.all(
      names.map((name, index) =>
        (index % 2 === 0 ? first : second).addParticipant(context(), id, {
          type: 'external_agent',
          participantId: newId(),
          agentMetadata: { name },
        }),
      ),
    );
    expect(results.every((result) => result.ok)).toBe(true);
    const participants = (await queries.participants(organizationId, id)) ?? [];
    const kept = participants.map((one) => (one.type === 'external_agent' ? one.agentMetadata?.['name'] : ''));
    expect(kept.sort()).toEqual([...names].sort());
  });

  it('without changes write nothing and still return the newest state', async () => {
    const id = await createChannel();
    await first.update(context(), id, { name: 'one' });
    await second.update(context(), id, { name: 'two' });
    const result = await first.update(context(), id, { name: 'one' });
    expect(result.ok && result.entity.name).toBe('one');
    expect(await nameOf(id)).toBe('one');
    const again = await second.update(context(), id, { name: 'one' });
    expect(again.ok && result.ok && again.revision === result.revision).toBe(true);
  });

  it('treat a missing channel and another organization’s alike', async () => {
    const id = await createChannel();
    const foreign = await first.update(context({ organizationId: newId() }), id, { name: 'mine' });
    const missing = await first.update(context(), newId(), { name: 'mine' });
    expect(foreign).toEqual(missing);
    expect(await queries.channel(newId(), id)).toBeNull();
  });

  it('repeated with the same id write nothing', async () => {
    const id = await createChannel();
    const command = context();
    const participant = { type: 'external_agent', participantId: newId(), agentMetadata: null } as const;
    const once = await first.addParticipant(command, id, participant);
    const twice = await second.addParticipant(command, id, participant);
    expect(once.ok && twice.ok && once.revision === twice.revision).toBe(true);
  });
});
