/* A caller that has seen a revision is answered from memory, unless the memory is older. */
import { afterAll, beforeAll, expect, it } from 'vitest';

import { streamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import { composeFeatures } from '#services/features.ts';
import { PLAIN_CHANNEL, serviceCommand } from '#test/support/commands.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';

let test: TestPlatform;
beforeAll(async () => {
  test = await startTestPlatform();
});
afterAll(() => test.stop());

it('reads the log only for revisions that this process has not in memory', async () => {
  const { store } = test.platform;
  let reads = 0;
  const counted: EventStore = {
    append: (...args) => store.append(...args),
    readStream(...args) {
      reads += 1;
      return store.readStream(...args);
    },
    ping: () => store.ping(),
    close: () => store.close(),
  };
  const { channels: ours } = composeFeatures({ ...test.platform, store: counted });
  const { channels: others } = composeFeatures(test.platform);
  const organizationId = newId();
  const command = () => serviceCommand(organizationId);
  const created = command();
  const id = created.commandId;
  expect(await ours.create(created, { id, ...PLAIN_CHANNEL, name: 'first' })).toMatchObject({ ok: true });
  expect(await others.update(command(), id, { name: 'second' })).toMatchObject({ ok: true });

  reads = 0;
  const nameSeen = async (revision?: number): Promise<string | undefined> => {
    const seenRevision = revision === undefined ? undefined : streamRevision(revision);
    return (await ours.entities.current({ ...command(), seenRevision }, id))?.name;
  };
  expect(await nameSeen(0)).toBe('first');
  expect(reads).toBe(0);
  expect(await nameSeen(1)).toBe('second');
  expect(reads).toBe(1);
  expect(await others.update(command(), id, { name: 'third' })).toMatchObject({ ok: true });
  expect(await nameSeen(1)).toBe('second');
  expect(reads).toBe(1);
  expect(await nameSeen()).toBe('third');
});

it('knows what holds for an entity from memory alone, unless an append may be changing it', async () => {
  const { store } = test.platform;
  const sent = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  let isHeld = false;
  const held: EventStore = {
    async append(...args) {
      if (isHeld) {
        sent.resolve();
        await go.promise;
      }
      return store.append(...args);
    },
    readStream: (...args) => store.readStream(...args),
    ping: () => store.ping(),
    close: () => store.close(),
  };
  const { channels: ours } = composeFeatures({ ...test.platform, store: held });
  const organizationId = newId();
  const command = () => serviceCommand(organizationId);
  const created = command();
  const id = created.commandId;
  const isNamed = (revision: number, name: string) =>
    ours.entities.isKnown(id, streamRevision(revision), (channel) => channel?.name === name);

  expect(isNamed(0, 'first')).toBe(false);
  await ours.create(created, { id, ...PLAIN_CHANNEL, name: 'first' });
  expect([isNamed(0, 'first'), isNamed(0, 'other'), isNamed(1, 'first')]).toEqual([true, false, false]);

  isHeld = true;
  const renamed = ours.update(command(), id, { name: 'second' });
  await sent.promise;
  expect([isNamed(0, 'first'), isNamed(0, 'second')]).toEqual([false, false]);
  expect(ours.entities.isKnown(id, streamRevision(0), (channel) => channel !== null)).toBe(true);
  go.resolve();
  await renamed;
  expect([isNamed(1, 'second'), isNamed(0, 'second'), isNamed(2, 'second')]).toEqual([true, true, false]);
});
