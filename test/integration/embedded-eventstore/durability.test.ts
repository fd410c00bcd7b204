// Acknowledged appends are on disk. A killed process cannot prove that, because
// the operating system still has its writes, so the test checks the system calls.
// Without strace, check by hand: run the event store under the tracer of the
// system and look for an fdatasync of `events.mdb` before each response.
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EventStoreDBClient, jsonEvent } from '@eventstore/db-client';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '#test/support/eventually.ts';
import { startStoreProcess } from './event-store-process.ts';

let dataDir: string;
let client: EventStoreDBClient | undefined;

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'event-store-durability-'));
});
afterEach(async () => {
  await client?.dispose();
  client = undefined;
  await rm(dataDir, { recursive: true, force: true });
});

function canTrace(): boolean {
  try {
    execFileSync('strace', ['-f', '-o', '/dev/null', 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Pages written, flush, the root that makes them valid, response: complete and in this order. */
type Step = 'pages' | 'flush' | 'root' | 'answer';

/** The steps in the trace since the client connected. */
function steps(trace: string): Step[] {
  const found: Step[] = [];
  for (const line of trace.split('\n')) {
    // The root page is written through a descriptor of its own that is opened with O_DSYNC: 128 bytes.
    if (/pwrite64\(.*events\.mdb>.*, 128, \d+\)/.test(line)) found.push('root');
    else if (/p?writev?(64)?\(.*events\.mdb>/.test(line)) found.push('pages');
    else if (/fdatasync\(.*events\.mdb>/.test(line)) found.push('flush');
    // The answers of the batch append are data frames (type 0) of this size on its stream.
    else if (/writev?\(.*(socket|TCP).*-[0-9a-f]{4}-/.test(line)) found.push('answer');
  }
  return found;
}

/** Responses without pages, flush and root since the previous response. */
function early(order: readonly Step[]): number {
  let count = 0;
  let since: Step[] = [];
  for (const step of order) {
    if (step !== 'answer') {
      since.push(step);
      continue;
    }
    if (!/pages(,pages)*,flush,root$/.test(since.join(','))) count++;
    since = [];
  }
  return count;
}

describe.skipIf(!canTrace())('each append, one after another', () => {
  test('is flushed to disk before it is acknowledged', async () => {
    const traceFile = join(dataDir, 'trace');
    const calls = 'fdatasync,fsync,msync,pwrite64,pwritev,write,writev,sendmsg';
    // A slow disk: the first commit is made on the thread of the event store, the others are not.
    const slow = 'inject=fdatasync:delay_exit=5000';
    const shell = `exec strace -f -y -s 200 -o '${traceFile}' -e trace=${calls} -e ${slow}`;
    const store = await startStoreProcess({ dataDir, shell });
    client = EventStoreDBClient.connectionString(store.url);
    // Connects; the count starts after it.
    await client.getStreamMetadata('none');
    const before = (await settled(traceFile)).length;
    const count = 10;
    for (let i = 0; i < count; i++) await client.appendToStream('next', jsonEvent({ type: 'next', data: { i } }));
    await client.dispose();
    await store.end('SIGTERM');

    const trace = (await readFile(traceFile, 'utf8')).slice(before);
    const order = steps(trace);
    expect(order.filter((step) => step === 'answer')).toHaveLength(count);
    expect(early(order)).toBe(0);
    const [own, ...others] = flushingThreads(trace);
    expect(others).toHaveLength(count - 1);
    expect(others).not.toContain(own);
  });
});

describe('the order of system calls', () => {
  const commit: Step[] = ['pages', 'pages', 'flush', 'root'];
  test('is right when every response follows its flush', () => {
    expect(early([...commit, 'answer', ...commit, 'answer'])).toBe(0);
  });
  test.each<[string, Step[]]>([
    ['no flush', ['pages', 'root', 'answer']],
    ['the flush after the answer', ['pages', 'answer', 'flush', 'root']],
    ['the root before the flush', ['pages', 'root', 'flush', 'answer']],
    ['one commit for two answers', [...commit, 'answer', 'answer']],
  ])('is wrong with %s', (_name, order) => {
    expect(early(order)).toBeGreaterThan(0);
  });
});

/** The thread of each flush. */
function flushingThreads(trace: string): string[] {
  return Array.from(trace.matchAll(/^(\d+) +fdatasync\(.*events\.mdb>/gm), ([, thread = '']) => thread);
}

/** The trace once it no longer grows. */
async function settled(file: string): Promise<string> {
  let last = '';
  return eventually(async () => {
    const now = await readFile(file, 'utf8');
    const isSettled = now === last && now !== '';
    last = now;
    if (!isSettled) throw new Error('the trace still grows');
    return now;
  });
}
