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
