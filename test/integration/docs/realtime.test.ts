import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

import { clientFrame, serverFrame } from '#libs/features/realtime/index.ts';
import { CLOSE } from '#libs/platform/live/index.ts';

const text = await readFile(join(import.meta.dirname, '../../../docs/realtime.md'), 'utf8');
const examples = [...text.matchAll(/```text\n([^]*?)```/g)].flatMap(([, block = '']) => block.trim().split('\n'));

describe('docs/realtime.md', () => {
  it.each(examples)('shows a valid frame: %s', (example) => {
    const fits = [clientFrame, serverFrame].filter((schema) => schema.safeParse(JSON.parse(example)).success);
    expect(fits).not.toEqual([]);
  });

  it('shows every kind of frame, and every close code', () => {
    const shown = new Set(examples.map((example) => JSON.parse(example).frame));
    const kinds = [...clientFrame.options, ...serverFrame.options].map((option) => [...option.shape.frame.values][0]);
    expect(kinds.filter((kind) => !shown.has(kind))).toEqual([]);
    const documented = new Set(text.slice(text.indexOf('| close code')).match(/\b\d{4}\b/g));
    expect(Object.values(CLOSE).filter((code) => !documented.has(String(code)))).toEqual([]);
  });
});
