/** A process that writes and projects: its projector must know which events its commands have appended. */
import { afterAll, beforeAll, expect, it, vi } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import { parseConfig } from '#libs/platform/config/index.ts';
import { start } from '#services/projector/role.ts';
import { PLAIN_CHANNEL, serviceCommand } from '#test/support/commands.ts';
import { eventually } from '#test/support/eventually.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import { roleContext } from '#test/support/role-context.ts';

let test: TestPlatform;

beforeAll(async () => {
  test = await startTestPlatform();
});
afterAll(() => test.stop());

it('are delivered to the projector that applies them for the commands of the process', async () => {
  const context = roleContext(test.platform);
  const delivered = vi.spyOn(context.features.projector, 'applyStored');
  const projector = await start(context, parseConfig({}));
  await context.features.channels.create(serviceCommand(newId()), { id: newId(), ...PLAIN_CHANNEL });
  await eventually(() => expect(delivered).toHaveBeenCalled());
  await projector.stop();
});
