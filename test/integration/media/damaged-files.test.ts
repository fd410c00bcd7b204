/** Files of the folder that were truncated, overwritten or made longer: a fault that names them, never a verdict. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import sharp from 'sharp';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { folderBlobStore } from '#libs/platform/blobs/index.ts';
import { downloadOf } from '#test/support/download.ts';
import { DocumentsApi } from '#test/support/documents-api.ts';
import { eventually } from '#test/support/eventually.ts';

const UPLOADS = '/api/v1/media/uploads';

let folder: string;
let api: DocumentsApi;
let origin: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'parley-test-blobs-'));
  api = await DocumentsApi.start({ blobsDir: folder, hasWorker: false });
  origin = await api.api.listen();
});
afterAll(async () => {
  await api?.stop();
  await rm(folder, { recursive: true, force: true });
});

const DAMAGES: readonly [string, (path: string, content: Buffer) => Promise<void>][] = [
  ['truncated', (path, content) => truncate(path, content.length >> 1)],
  ['emptied', (path) => truncate(path, 0)],
  ['overwritten', (path, content) => writeFile(path, randomBytes(content.length))],
  ['made longer', (path, content) => writeFile(path, Buffer.concat([content, content]))],
];

async function upload(
  content: Buffer,
): Promise<{ readonly id: string; readonly path: string; open(range?: string): Promise<Response> }> {
  const { json } = await api.call('POST', UPLOADS, content, { 'content-type': 'application/octet-stream' });
  const hash = createHash('sha256').update(content).digest('hex');
  const open = (range?: string) =>
    fetch(new URL(new URL(json.file_url).pathname, origin), { headers: { ...(range !== undefined && { range }) } });
  return { id: json.id, path: join(folder, hash.slice(0, 2), hash), open };
}

it.each(DAMAGES)(
  'a download of a file that was %s breaks, and is whole again when the file is',
  async (how, damage) => {
    const content = randomBytes(300_000);
    const { path, open } = await upload(content);
    await damage(path, content);
    expect(['broken', 'store_unavailable']).toContain(await downloadOf(open(), content));
    const part = await open('bytes=0-9');
    // The bytes of a part have no hash.
    expect(part.status).toBe(how === 'overwritten' ? 206 : 503);
    await part.arrayBuffer();
    await writeFile(path, content);
    expect(await downloadOf(open(), content)).toBe('whole');
  },
);

it.each(DAMAGES)('the fault for a file that was %s names it', async (_how, damage) => {
  const content = randomBytes(100_000);
  const { path } = await upload(content);
  const blobs = folderBlobStore(folder);
  const blob = { hash: path.slice(-64), bytes: content.length };
  await damage(path, content);
  const fault = await blobs.withFile(blob, async () => 'used').catch((error: unknown) => error);
  expect(fault).toMatchObject({ code: 'store_unavailable', cause: { message: expect.stringContaining(path) } });
  // Putting the same content again mends the file.
  expect(await blobs.put([content] as never, { maxBytes: content.length })).toEqual(blob);
  expect(await blobs.withFile(blob, async (at) => content.equals(await readFile(at)))).toBe(true);
});

it('an image that was damaged is no damaged image, and ends when it is put again', async () => {
  const [picture, sound] = await Promise.all([pictureOf('#36c'), pictureOf('#c63')]);
  const { id, path } = await upload(picture);
  await truncate(path, picture.length - 30);
  await api.startWorker();
  const item = async (of: string) => (await api.call('GET', `/api/v1/media/${of}`)).json;
  const isReady = (of: string) =>
    eventually(async () => expect(await item(of)).toMatchObject({ status: 'Ready', width: 40 }));
  await isReady((await upload(sound)).id);
  expect((await item(id)).status).toMatch(/^(Queued|Processing)$/);
  await isReady((await upload(picture)).id);
  await isReady(id);
});

function pictureOf(background: string): Promise<Buffer> {
  return sharp({ create: { width: 40, height: 20, channels: 3, background } })
    .png()
    .toBuffer();
}
