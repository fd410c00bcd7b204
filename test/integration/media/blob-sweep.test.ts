import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import sharp from 'sharp';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import { NO_EVENTS } from '#libs/kernel/event.ts';
import { BLOB_REFERENCES } from '#services/features.ts';
import { sweepBlobs } from '#services/worker/blob-sweep.ts';
import { ageFiles } from '#test/support/aged-files.ts';
import { runParley } from '#test/support/command-line.ts';
import { DocumentsApi } from '#test/support/documents-api.ts';
import { eventually } from '#test/support/eventually.ts';

let folder: string;
let api: DocumentsApi;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'parley-test-sweep-'));
  api = await DocumentsApi.start({ blobsDir: join(folder, 'blobs') });
});
afterAll(async () => {
  await api?.stop();
  await rm(folder, { recursive: true, force: true });
});

const platform = () => api.api.stores.platform;
const hashes = () => Array.fromAsync(platform().blobs.list());
const sweep = (putBeforeMs?: number) =>
  sweepBlobs(platform(), {
    references: BLOB_REFERENCES,
    signal: new AbortController().signal,
    ...(putBeforeMs !== undefined && { putBeforeMs }),
  });

async function putBlob(): Promise<string> {
  return (await platform().blobs.put([randomBytes(100)] as never, { maxBytes: 1_000 })).hash;
}

let items = 0;

/** @returns the ids of an item and of its blobs: the file and its preview */
async function newItem() {
  // No two have the same preview.
  items += 1;
  const background = { r: items * 50, g: 0, b: 0 };
  const file = await sharp({ create: { width: 8, height: 8, channels: 3, background } })
    .png()
    .toBuffer();
  const headers = { 'content-type': 'application/octet-stream' };
  const { json } = await api.call('POST', '/api/v1/media/uploads?name=a.png', file, headers);
  await eventually(async () => (await api.call('GET', `/api/v1/media/${json.id}`)).json.status === 'Ready');
  const named = JSON.stringify(await api.events(`media-${json.id}`)).matchAll(/[0-9a-f]{64}/g);
  return { id: json.id as string, blobs: [...new Set([...named].map(([hash]) => hash))] };
}

it('removes nothing by a log that names no file at all', async () => {
  const hash = await putBlob();
  await ageFiles(join(folder, 'blobs'), [hash]);
  await expect(sweep()).rejects.toThrow('no event names a file');
  expect(await hashes()).toEqual([hash]);
  await platform().blobs.remove(hash, { putBeforeMs: Date.now() });
});

it('removes old files that nothing names, and no others', async () => {
  const [item, deleted] = [await newItem(), await newItem()];
  expect(item.blobs).toHaveLength(2);
  expect((await api.call('DELETE', `/api/v1/media/${deleted.id}`)).status).toBe(204);
  // An event of a newer version, with fields that this one does not know.
  const unknown = await putBlob();
  const id = newId();
  const metadata = {
    at: new Date().toISOString(),
    organizationId: api.api.organizationId,
    actor: { type: 'system', id: 'test' } as const,
    commandId: id,
    $correlationId: id,
    $causationId: id,
  };
  const event = { id, type: 'MediaTranscribed.v1', data: { to: [{ blob: unknown }] }, metadata };
  await platform().store.append(`media-${newId()}`, NO_EVENTS, [event]);
  const young = await putBlob();
  const old = await putBlob();
  await ageFiles(join(folder, 'blobs'), [...item.blobs, ...deleted.blobs, unknown, old]);

  expect(await sweep()).toEqual({ kept: 6, removed: 1, removedBytes: 100 });
  const kept = [...item.blobs, ...deleted.blobs, unknown, young];
  expect((await hashes()).toSorted()).toEqual(kept.toSorted());
  expect(await sweep()).toEqual({ kept: 6, removed: 0, removedBytes: 0 });

  // Later, when the deletion is old and no item shares its files, and so is the file that was young.
  expect(await sweep(Date.now() + 60_000)).toMatchObject({ kept: 3, removed: 3 });
  expect((await hashes()).toSorted()).toEqual([...item.blobs, unknown].toSorted());
});

it('keeps the files of a deleted item that another item names', async () => {
  const { id, blobs } = await newItem();
  const bytes = await platform().blobs.size(blobs[0]!);
  const file = await Array.fromAsync((await platform().blobs.read({ hash: blobs[0]!, bytes: bytes! }))!);
  const headers = { 'content-type': 'application/octet-stream' };
  const again = await api.call('POST', '/api/v1/media/uploads?name=b.png', Buffer.concat(file), headers);
  expect(again.status).toBe(200);
  expect((await api.call('DELETE', `/api/v1/media/${id}`)).status).toBe(204);
  await eventually(async () => (await api.call('GET', `/api/v1/media/${again.json.id}`)).json.status === 'Ready');
  await sweep(Date.now() + 60_000);
  for (const hash of blobs) expect(await platform().blobs.size(hash)).not.toBeNull();
});

it('runs by the command line, on the files and the log that the environment names', async () => {
  const old = await putBlob();
  await ageFiles(join(folder, 'blobs'), [old]);
  const { eventStore, redis } = api.api.stores;
  const environment = { DATA_DIR: folder, EVENTSTORE_URL: eventStore.url, REDIS_URL: redis.url };
  const { exitCode, stdout } = await runParley(environment, 'sweep', '--json');
  expect([exitCode, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ removed: 1, removed_bytes: 100 })]);
  expect(await hashes()).not.toContain(old);
});
