import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { expect, it } from 'vitest';

import { eventually } from '#test/support/eventually.ts';

import { readPage } from './page.ts';

/** Memory of texts of a megabyte and more, which V8 keeps outside of its heap. */
function textMemory(): number {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  collectGarbage();
  return process.memoryUsage().external;
}

it('keeps nothing of the pages that were read, whatever names their elements have', async () => {
  const text = 'lorem ipsum dolor sit amet '.repeat(45_000);
  const read = (number: number): void => {
    const html = `<div class="a-name-of-page-${number} another-of-${number}" id="the-id-of-page-${number}"><p>${text}</div>`;
    readPage(Buffer.from(html), { url: 'https://example.org/', contentType: 'text/html; charset=utf-8' });
  };
  read(0);
  const before = textMemory();
  for (let number = 1; number <= 8; number++) read(number);
  // V8 frees buffers in a thread of its own.
  await eventually(() => expect(textMemory() - before).toBeLessThan(3 * text.length), { timeoutMs: 10_000 });
});
