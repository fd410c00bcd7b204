/* A worker gets files that attack what reads them. Its memory counts as the kernel does: the peak of each process. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, expect, it } from 'vitest';

import { DocumentsApi } from '#test/support/documents-api.ts';
import { eventually } from '#test/support/eventually.ts';
import { HOSTILE_FILES, SAMPLE_FILES } from '#test/support/media-files.ts';
import { memoryPeakOfTree } from '#test/support/memory.ts';
import { startParleyProcess } from '#test/support/parley-process.ts';
import type { ParleyProcess } from '#test/support/parley-process.ts';

const MIB = 1024 * 1024;
const TIMEOUT_MS = 180_000;

let dataDir: string;
let api: DocumentsApi;
let worker: ParleyProcess;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'parley-test-hostile-'));
  api = await DocumentsApi.start({ hasWorker: false, blobsDir: join(dataDir, 'blobs') });
  const { eventStore, redis } = api.api.stores;
  worker = await startParleyProcess({
    role: 'worker',
    eventstoreUrl: eventStore.url,
    redisUrl: redis.url,
    env: { DATA_DIR: dataDir },
    wait: false,
  });
}, TIMEOUT_MS);
afterAll(async () => {
  await worker?.stop();
  await api?.stop();
  await rm(dataDir, { recursive: true, force: true });
}, 60_000);

async function upload(content: Uint8Array): Promise<string> {
  const headers = { 'content-type': 'application/octet-stream' };
  const { status, json } = await api.call('POST', '/api/v1/media/uploads', Buffer.from(content), headers);
  expect(status).toBe(200);
  return json.id;
}

it(
  'hostile files end, all at once, in a worker that lives and has less than 512 MiB with its processes',
  async () => {
    let peak = 0;
    const watch = setInterval(() => {
      peak = Math.max(peak, memoryPeakOfTree(worker.pid));
    }, 10);
    try {
      const { pid } = worker;
      const files = [...HOSTILE_FILES, ...SAMPLE_FILES.map(({ name, make }) => ({ name, make, failure: null }))];
      const ids: string[] = [];
      for (const { make } of files) ids.push(await upload(await make()));
      for (const [index, { name, failure }] of files.entries()) {
        const status = await eventually(
          async () => {
            const { json } = await api.call('GET', `/api/v1/media/${ids[index]}`);
            expect(json.status).toMatch(/^(Ready|Failed)/);
            return json.status as string;
          },
          { timeoutMs: TIMEOUT_MS, everyMs: 50 },
        );
        const isAsExpected = (failure ?? /^Ready$/).test(status.replace(/^Failed: /, ''));
        expect([name, status, isAsExpected]).toEqual([name, status, true]);
      }
      expect(worker.alive() && worker.pid).toBe(pid);
    } finally {
      clearInterval(watch);
    }
    // On systems without /proc, both are 0.
    expect(peak).toBeLessThan(512 * MIB);
  },
  TIMEOUT_MS,
);
