import { expect, it } from 'vitest';

import { streamRevision } from '#libs/kernel/event.ts';

import { RecentCommands } from './repeated-command.ts';

it('recent commands know since which revision they are all', () => {
  const recent = new RecentCommands(streamRevision(6));
  const note = (revision: number, commandId: string) =>
    recent.note({ revision: streamRevision(revision), metadata: { commandId, idempotencyKey: 'a key' } });
  const isKnown = (revision: number) => recent.hasAllAfter(streamRevision(revision));
  // The first one has three events.
  for (const revision of [7, 8, 9]) note(revision, 'command 9');
  for (let revision = 10; revision < 1_009; revision++) note(revision, `command ${revision}`);
  expect([isKnown(5), isKnown(6), recent.has('command 9')]).toEqual([false, true, true]);
  note(1_009, 'command 1009');
  expect([isKnown(8), isKnown(9), recent.has('command 9'), recent.has('command 10')]).toEqual([
    false,
    true,
    false,
    true,
  ]);
});
