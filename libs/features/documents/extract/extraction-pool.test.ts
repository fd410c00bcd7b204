import { afterEach, describe, expect, it } from 'vitest';

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
const document: Content = { documentId: 'd', name: 'n', url: null, contentType: 'text/plain', text: 'some text' };
/** Takes seconds to read. */
const LARGE = html('<p>word <b>word</b> <i>word</i>'.repeat(500_000));

describe('the extraction pool', () => {
  it('reads pages, PDFs and documents', async () => {
    const pool = poolOf();
    const page = await pool.readPage(html('<title>T</title><p>x'), source);
    expect(page).toMatchObject({ title: 'T', text: 'x' });
    expect((await pool.extractFacts(document)).nodes).toHaveLength(1);
    await expect(pool.readPdf(html('not a PDF'))).rejects.toMatchObject({
      name: 'ExtractionError',
      reason: 'unreadable',
    });
  });

  it('ends a task that takes too long, and reads the next one', async () => {
    const pool = poolOf({ threads: 1 });
    const slow = pool.readPage(LARGE, source, { timeoutMs: 50 });
    const next = pool.readPage(html('<p>next'), source);
    await expect(slow).rejects.toMatchObject({ reason: 'timeout', message: 'Reading it takes longer than 0.05 s' });
    expect((await next).text).toBe('next');
  });

  it('ends a task that takes too much memory, and reads the next one', async () => {
    const pool = poolOf({ threads: 1, heapMib: 16 });
    const large = pool.readPage(LARGE, source);
    await expect(large).rejects.toMatchObject({
      reason: 'out_of_memory',
      message: 'Reading it takes more than 16 MiB',
    });
    expect((await pool.readPage(html('<p>next'), source)).text).toBe('next');
  });

  it('ends a cancelled task, whether it waits or runs', async () => {
    const pool = poolOf({ threads: 1 });
    const cancel = new AbortController();
    const running = pool.readPage(LARGE, source, { signal: cancel.signal });
    const waiting = pool.readPage(LARGE, source, { signal: cancel.signal });
    cancel.abort();
    const after = pool.readPage(LARGE, source, { signal: cancel.signal });
    const outcomes = await Promise.allSettled([running, waiting, after]);
    expect(outcomes).toMatchObject(Array.from({ length: 3 }, () => ({ reason: { reason: 'cancelled' } })));
    expect((await pool.extractFacts(document)).passages).toEqual(['some text']);
  });

  it('ends all tasks when it is closed', async () => {
    const pool = poolOf({ threads: 1 });
    const tasks = [pool.readPage(LARGE, source), pool.readPage(LARGE, source)];
    const closing = pool.close();
    const outcomes = await Promise.allSettled([...tasks, pool.extractFacts(document)]);
    expect(outcomes).toMatchObject(Array.from({ length: 3 }, () => ({ reason: { reason: 'closed' } })));
    await closing;
  });
});
