import { expect, it } from 'vitest';

import { InteractionCommands } from './interactions.commands.ts';

it.each(['append', 'complete'] as const)('%s has no default for the writer', (command) => {
  // The length of a function counts its parameters up to the first one that has a default.
  expect(InteractionCommands.prototype[command]).toHaveLength(4);
});
