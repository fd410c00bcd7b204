import { expect, it } from 'vitest';

import { blocksNotRun, commandBlocks, isOf } from '#test/support/document-commands.ts';

it('docs/contributing.md names the blocks of commands that no test runs, each of which exists once', async () => {
  const [blocks, rows] = await Promise.all([commandBlocks(), blocksNotRun()]);
  const found = rows.map((row) => ({ ...row, blocks: blocks.filter((block) => isOf(block, row)).length }));
  expect(found).toEqual(rows.map((row) => ({ ...row, blocks: 1 })));
  expect(found.every(({ reason }) => reason.length > 10)).toBe(true);
  // `test/e2e/documents.test.ts` runs all others.
  expect(blocks.length - rows.length).toBeGreaterThan(rows.length);
});
