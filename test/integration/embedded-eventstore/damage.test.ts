// LMDB maps its file into memory and trusts it: each damage here used to end the process by a signal, or was served.
import { copyFile, mkdir, mkdtemp, open, readFile, rm, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EventStoreDBClient, jsonEvent } from '@eventstore/db-client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { backUpEventStore, startEmbeddedEventStore } from '#infra/embedded-eventstore/index.ts';
import { damageOf } from '#infra/embedded-eventstore/log/damage.ts';
import { IN_CAMPAIGN } from '#test/support/rounds.ts';
import { runStoreProcess } from './event-store-process.ts';

const PAGE_BYTES = 4096;
const REFUSAL =
  /^\w+: the log .*events\.mdb is damaged: .*`npx parley backup`.*`npx parley rebuild --accept-lost-events`.*$/;
/** One of each problem. */
const IN_PROCESSES = new Set([
  'half of the file is gone',
  'the first meta page is overwritten',
  'a leaf is zeros',
  'the roots are overwritten',
]);

let parent: string;
let whole: string;

beforeAll(async () => {
  parent = await mkdtemp(join(tmpdir(), 'event-store-damage-'));
  const store = await startEmbeddedEventStore({ dataDir: join(parent, 'whole'), insecure: true });
  const client = EventStoreDBClient.connectionString(store.url);
  await client.appendToStream(
    's',
    Array.from({ length: 200 }, () => jsonEvent({ type: 't', data: { text: 'a'.repeat(3_000) } })),
  );
  await client.dispose();
  await store.stop();
  whole = join(parent, 'whole', 'events.mdb');
});
afterAll(() => rm(parent, { recursive: true, force: true }));

async function copyOf(name: string): Promise<{ dataDir: string; file: string }> {
  const dataDir = join(parent, name.replaceAll(' ', '-'));
  const file = join(dataDir, 'eventstore', 'events.mdb');
  await mkdir(join(dataDir, 'eventstore'), { recursive: true });
  await copyFile(whole, file);
  return { dataDir, file };
}

async function overwrite(file: string, position: number, length: number, byte = 0x5a): Promise<void> {
  const handle = await open(file, 'r+');
  await handle.write(Buffer.alloc(length, byte), 0, length, position);
  await handle.close();
}

/** Overwrites one page of a kind, `P_LEAF` or `P_OVERFLOW`, that is no root, with zeros. */
async function zero(file: string, kind: number): Promise<void> {
  const bytes = await readFile(file);
  const newest = [0, PAGE_BYTES].sort((a, b) =>
    Number(bytes.readBigUInt64LE(b + 152) - bytes.readBigUInt64LE(a + 152)),
  );
  const roots = new Set(
    newest.slice(0, 1).flatMap((at) => [88, 136].map((of) => Number(bytes.readBigUInt64LE(at + of)))),
  );
  const ofNewest = bytes.readBigUInt64LE((newest[0] ?? 0) + 152);
  for (let page = 2; page < bytes.length / PAGE_BYTES; page++) {
    const at = page * PAGE_BYTES;
    // Written by the newest commit, so it is in use.
    const isUsed = Number(bytes.readBigUInt64LE(at)) === page && bytes.readBigUInt64LE(at + 8) === ofNewest;
    if (isUsed && bytes.readUInt16LE(at + 18) === kind && !roots.has(page)) {
      return overwrite(file, at, PAGE_BYTES, 0);
    }
  }
  throw new Error('the file has no such page');
}

test.each<[damage: string, problem: RegExp, harm: (file: string, size: number) => Promise<void>]>([
  ['half of the file is gone', /it has \d+ bytes, but its newest commit needs \d+/, (f, size) => truncate(f, size / 2)],
  ['the last page is gone', /it has \d+ bytes/, (file, size) => truncate(file, size - PAGE_BYTES)],
  ['one byte is left', /its meta pages are not those of a log/, (file) => truncate(file, 1)],
  ['the first meta page is overwritten', /its meta pages are not/, (file) => overwrite(file, 0, PAGE_BYTES)],
  ['the second meta page is overwritten', /its meta pages are not/, (file) => overwrite(file, PAGE_BYTES, PAGE_BYTES)],
  ['the page size is overwritten', /its meta pages are not/, (file) => overwrite(file, 48, 4)],
  ['the data version is overwritten', /its meta pages are not/, (file) => overwrite(file, 28, 2)],
  ['the flags of the free tree are overwritten', /its meta pages are not/, (file) => overwrite(file, 52, 2)],
  ['the flags of the main tree are overwritten', /its meta pages are not/, (file) => overwrite(file, 100, 2)],
  ['a leaf is zeros', /its page \d+ is not that of a log/, (file) => zero(file, 0x02)],
  ['the first page of a long value is zeros', /its page \d+ is not that of a log/, (file) => zero(file, 0x04)],
  ['all pages are zeros', /its meta pages are not/, (file, size) => overwrite(file, 0, size, 0)],
  [
    'all pages but the meta pages are zeros',
    /its meta pages refer to pages/,
    (file, size) => overwrite(file, 2 * PAGE_BYTES, size - 2 * PAGE_BYTES, 0),
  ],
  [
    'the roots are overwritten',
    /its meta pages refer to pages/,
    async (file) => {
      await overwrite(file, 136, 8);
      await overwrite(file, PAGE_BYTES + 136, 8);
    },
  ],
])('a log of which %s is refused, and the error names the backup', async (damage, problem, harm) => {
  const { dataDir, file } = await copyOf(damage);
  await harm(file, (await stat(file)).size);
  // First: what is not found here would end the process of the tests.
  expect(damageOf(file)).toMatch(problem);
  const folder = join(dataDir, 'eventstore');
  const refusal = await startEmbeddedEventStore({ dataDir: folder }).then(
    () => 'none',
    (error: unknown) => String(error),
  );
  expect(refusal).toMatch(REFUSAL);
  expect(refusal).toMatch(problem);
  await expect(backUpEventStore(folder, join(dataDir, 'copy'))).rejects.toThrow('is damaged');
  if (!IN_CAMPAIGN && !IN_PROCESSES.has(damage)) return;
  const { code, output } = await runStoreProcess({ dataDir });
  expect([code, output]).toEqual([1, refusal.replace(/^\w+: /, 'event store: ').concat('\n')]);
});

test('a log whose last pages are free and were never written is not damaged', async () => {
  const { file } = await copyOf('free pages');
  // As after a commit that allocates 50 pages and frees them.
  const handle = await open(file, 'r+');
  for (const at of [144, PAGE_BYTES + 144]) {
    const lastPage = Buffer.alloc(8);
    await handle.read(lastPage, 0, 8, at);
    lastPage.writeBigUInt64LE(lastPage.readBigUInt64LE() + 50n);
    await handle.write(lastPage, 0, 8, at);
  }
  await handle.close();
  expect(damageOf(file)).toBeUndefined();
});

test('a missing and an empty file are logs without events', async () => {
  const { file } = await copyOf('empty');
  await truncate(file, 0);
  expect(damageOf(file)).toBeUndefined();
  expect(damageOf(join(parent, 'missing.mdb'))).toBeUndefined();
});
