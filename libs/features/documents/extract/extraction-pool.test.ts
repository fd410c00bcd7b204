import { afterEach, describe, expect, it } from 'vitest';

import { nestedPdfBomb, SAMPLE_FILES } from '#test/support/media-files.ts';
import { memoryPeakOf } from '#test/support/memory.ts';

import type { Content } from './extraction.ts';
import { ExtractionPool } from './extraction-pool.ts';

const pools: ExtractionPool[] = [];
afterEach(() => Promise.all(pools.splice(0).map((pool) => pool.close())));

function poolOf(options: ConstructorParameters<typeof ExtractionPool>[0] = {}): ExtractionPool {
  const pool = new ExtractionPool(options);
  pools.push(pool);
  return pool;
}

const html = (text: string): Uint8Array => new TextEncoder().encode(text);
const source = { url: 'https://example.org/', contentType: 'text/html' };
const organizationId = 'an organization';
const document: Content = { documentId: 'd', name: 'n', url: null, contentType: 'text/plain', text: 'some text' };
/** Takes seconds to read. */
const LARGE = html('<p>word <b>word</b> <i>word</i>'.repeat(500_000));

describe('the extraction pool', () => {
  it('reads pages, PDFs and documents', async () => {
    const pool = poolOf();
    const page = await pool.readPage(html('<title>T</title><p>x'), source, { organizationId });
    expect(page).toMatchObject({ title: 'T', text: 'x' });
    expect((await pool.extractFacts(document, { organizationId })).nodes).toHaveLength(1);
    await expect(pool.readPdf(html('not a PDF'), { organizationId })).rejects.toMatchObject({
      name: 'ExtractionError',
      reason: 'unreadable',
    });
  });

  it('ends a task that takes too long, and reads the next one', async () => {
    const pool = poolOf();
    const slow = pool.readPage(LARGE, source, { organizationId, timeoutMs: 50 });
    const next = pool.readPage(html('<p>next'), source, { organizationId });
    await expect(slow).rejects.toMatchObject({ reason: 'timeout', message: 'Reading it takes longer than 0.05 s' });
    expect((await next).text).toBe('next');
  });

  it('ends a task that takes too much memory, and reads the next one', async () => {
    const pool = poolOf({ memoryMib: 96 });
    const large = pool.readPage(LARGE, source, { organizationId });
    await expect(large).rejects.toMatchObject({
      reason: 'out_of_memory',
      message: 'Reading it takes more than 96 MiB',
    });
    expect((await pool.readPage(html('<p>next'), source, { organizationId })).text).toBe('next');
  });

  it('gives what expands a PDF none of the memory of its own process', async () => {
    const pool = poolOf();
    // What else a test needs, and the first document.
    await pool.extractFacts(document, { organizationId });
    const before = memoryPeakOf(process.pid);
    const bombs = [nestedPdfBomb(1_024), nestedPdfBomb(2_560)].map((bomb) => new Uint8Array(bomb));
    expect(bombs.map(({ length }) => length < 10_000)).toEqual([true, true]);
    const read = bombs.map((bomb) => pool.readPdf(bomb, { organizationId, timeoutMs: 120_000 }));
    const fine = await SAMPLE_FILES.find(({ name }) => name === 'turned.pdf')!.make();
    const other = await pool.readPdf(new Uint8Array(fine), { organizationId: 'another one' });
    expect(other.text).toContain('Turned');
    for (const outcome of await Promise.allSettled(read)) {
      expect(outcome).toMatchObject({
        reason: { reason: 'out_of_memory', message: 'Reading it takes more than 384 MiB' },
      });
    }
    expect(memoryPeakOf(process.pid) - before).toBeLessThan(64 * 1024 * 1024);
  });

  it('ends a cancelled task, whether it waits or runs', async () => {
    const pool = poolOf();
    const cancel = new AbortController();
    const running = pool.readPage(LARGE, source, { organizationId, signal: cancel.signal });
    const waiting = pool.readPage(LARGE, source, { organizationId, signal: cancel.signal });
    cancel.abort();
    const after = pool.readPage(LARGE, source, { organizationId, signal: cancel.signal });
    const outcomes = await Promise.allSettled([running, waiting, after]);
    expect(outcomes).toMatchObject(Array.from({ length: 3 }, () => ({ reason: { reason: 'cancelled' } })));
    expect((await pool.extractFacts(document, { organizationId })).passages).toEqual(['some text']);
  });

  it('ends all tasks when it is closed', async () => {
    const pool = poolOf();
    const tasks = [pool.readPage(LARGE, source, { organizationId }), pool.readPage(LARGE, source, { organizationId })];
    const closing = pool.close();
    const outcomes = await Promise.allSettled([...tasks, pool.extractFacts(document, { organizationId })]);
    expect(outcomes).toMatchObject(Array.from({ length: 3 }, () => ({ reason: { reason: 'closed' } })));
    await closing;
  });
});
