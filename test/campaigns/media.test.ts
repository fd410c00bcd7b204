/*
 * Workers are killed in a loop while media items run, old files of the same contents are swept, and, with S3, its server
 * is killed: each item ends once and is posted once to its channel, and all files that events name are there. MEDIA_ITEMS, MEDIA_ROUNDS and MEDIA_STORE
 * (`folder` or `s3`) set how many, how often, and where: `npm run test:media`.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import sharp from 'sharp';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { Fault } from '#libs/kernel/faults.ts';
import { BLOB_REFERENCES } from '#services/features.ts';
import { sweepBlobs } from '#services/worker/blob-sweep.ts';
import { ageFiles } from '#test/support/aged-files.ts';
import { DocumentsApi } from '#test/support/documents-api.ts';
import { eventually } from '#test/support/eventually.ts';
import { readLog } from '#test/support/log-reader.ts';
import { isDelivery, isEnd, mediaProblems, namedHashes, postProblems } from '#test/support/media-checker.ts';
import { type ParleyProcess, startParleyProcess } from '#test/support/parley-process.ts';
import { type S3Server, startS3Server } from '#test/support/s3/s3-server.ts';
import { findS3Server } from '#test/support/s3/versitygw.mjs';
import { type PageOfSite, startWebsite, type Website } from '#test/support/website.ts';

const ITEMS = Number(process.env['MEDIA_ITEMS'] ?? 16);
const ROUNDS = Number(process.env['MEDIA_ROUNDS'] ?? 2);
const TIMEOUT_MS = 240_000 + ROUNDS * 30_000 + ITEMS * 1_000;
const ORPHANS = 20;
const program = process.env['MEDIA_STORE'] === 's3' ? await findS3Server() : null;

let site: Website;
let s3: S3Server | null = null;
let dataDir: string;
/** Where the store keeps its files. */
let folder: string;
let api: DocumentsApi;
/** Where all items are posted. */
let channel: string;
const workers: ParleyProcess[] = [];
const pictures: Buffer[] = [];

beforeAll(async () => {
  if (process.env['MEDIA_STORE'] === 's3' && program === null) throw new Error('MEDIA_STORE=s3 needs Go');
  dataDir = await mkdtemp(join(tmpdir(), 'parley-test-media-'));
  s3 = program === null ? null : await startS3Server(program);
  folder = s3 === null ? join(dataDir, 'blobs') : join(s3.folder, s3.options.prefix);
  site = await startWebsite();
  // Each content belongs to two items: one is uploaded, one is fetched.
  for (let n = 0; n < ITEMS / 2; n += 1) {
    const background = { r: n % 256, g: n >> 8, b: 99 };
    const body = await sharp({ create: { width: 40, height: 30, channels: 3, background } })
      .png()
      .toBuffer();
    pictures.push(body);
    // Slow enough to be killed meanwhile.
    const answer: PageOfSite['answer'] = (_request, response) => {
      setTimeout(() => response.writeHead(200, { 'content-type': 'image/png' }).end(body), 50);
    };
    site.pages.set(`/${n}.png`, { answer });
  }
  const fetch = { allowHosts: [{ host: '127.0.0.1', port: site.port }] };
  api = await DocumentsApi.start({ hasWorker: false, fetch, blobsDir: folder, blobsS3: s3?.options ?? null });
  channel = (await api.call('POST', '/api/v1/channels', { name: 'Pictures' })).json.id;
  const { eventStore, redis } = api.api.stores;
  const options = { role: 'worker', eventstoreUrl: eventStore.url, redisUrl: redis.url, wait: false } as const;
  const env = { FETCH_ALLOW_HOSTS: `127.0.0.1:${site.port}`, DATA_DIR: dataDir, ...environmentOf(s3) };
  workers.push(...(await Promise.all([1, 2].map(() => startParleyProcess({ ...options, env })))));
}, 120_000);

afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.stop()));
  await api?.stop();
  await site?.stop();
  await s3?.stop();
  await rm(dataDir, { recursive: true, force: true });
});

function environmentOf(server: S3Server | null): Record<string, string> {
  if (server === null) return {};
  const { bucket, prefix, endpoint, credentials } = server.options;
  return {
    MEDIA_S3_BUCKET: bucket,
    MEDIA_S3_PREFIX: prefix.slice(0, -1),
    MEDIA_S3_ENDPOINT: endpoint ?? '',
    MEDIA_S3_ACCESS_KEY_ID: credentials?.accessKeyId ?? '',
    MEDIA_S3_SECRET_ACCESS_KEY: credentials?.secretAccessKey ?? '',
  };
}

const log = () => readLog(api.api.stores.eventStore.url, 'media-');

/** Repeats a request while the store of files is away. */
async function create(n: number): Promise<void> {
  const picture = pictures[n >> 1]!;
  const headers = { 'idempotency-key': `item-${n}` };
  await eventually(
    async () => {
      const { status } =
        n % 2 === 0
          ? await api.call('POST', '/api/v1/media', { source_url: `${site.origin}/${n >> 1}.png`, channel }, headers)
          : await api.call('POST', `/api/v1/media/uploads?name=${n}&channel=${channel}`, picture, {
              ...headers,
              'content-type': 'application/octet-stream',
            });
      expect(status).toBe(200);
    },
    // A removal that was broken off locks its content for two minutes.
    { timeoutMs: 240_000, everyMs: 100 },
  );
}

/** Four at a time. */
async function createAll(): Promise<void> {
  const next = Array.from({ length: ITEMS }, (_, n) => n).values();
  await Promise.all(
    [1, 2, 3, 4].map(async () => {
      for (const n of next) await create(n);
    }),
  );
}

/** @returns the number of sweeps that came to their end */
async function sweepUntil(signal: AbortSignal): Promise<number> {
  let sweeps = 0;
  while (!signal.aborted) {
    try {
      await sweepBlobs(api.api.stores.platform, { references: BLOB_REFERENCES, signal });
      sweeps += 1;
    } catch (error) {
      const isAway = error instanceof Fault && error.code === 'store_unavailable';
      const isEarly = error instanceof Error && error.message.startsWith('no event names');
      if (!isAway && !isEarly && error !== signal.reason) throw error;
    }
  }
  return sweeps;
}

it(
  'each item ends and is posted once, with all files that its events name, however often workers and the store are killed',
  async () => {
    const { blobs } = api.api.stores.platform;
    // 1. Files that are due to be removed: some never get a name, some get one at any time from now on.
    const old = [...pictures, ...Array.from({ length: ORPHANS }, (_, n) => Buffer.from(`orphan ${n}`))];
    const hashes: string[] = [];
    for (const content of old) hashes.push((await blobs.put([content] as never, { maxBytes: 1_000_000 })).hash);
    await ageFiles(folder, hashes);
    const orphans = hashes.slice(pictures.length);

    // 2. Items, sweeps and kills at the same time.
    const done = new AbortController();
    const sweeping = sweepUntil(done.signal);
    const creating = createAll();
    // Each item is processed, then delivered.
    const ended = async () => (await log()).filter((event) => isEnd(event) || isDelivery(event)).length;
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = await ended();
      // Each round begins with progress, unless all items have ended.
      await eventually(async () => (await ended()) > before || before === 2 * ITEMS, {
        timeoutMs: 120_000,
        everyMs: 50,
      });
      const victim = workers[round % workers.length]!;
      await Promise.all([victim.kill9(), s3?.kill9()]);
      await victim.start({ wait: false });
      if (s3 !== null) {
        await eventually(() =>
          blobs.size(orphans[0]!).then(
            () => false,
            () => true,
          ),
        );
        await s3.start();
      }
    }
    await creating;
    await eventually(async () => expect(await ended()).toBe(2 * ITEMS), { timeoutMs: 180_000, everyMs: 500 });
    done.abort(new Error('done'));
    expect(await sweeping).toBeGreaterThan(0);
    await sweepBlobs(api.api.stores.platform, { references: BLOB_REFERENCES, signal: new AbortController().signal });

    // 3. All that is named is there, and no orphan. Each item was posted.
    const events = await log();
    const posts = await readLog(api.api.stores.eventStore.url, `channel-${channel}`);
    expect(postProblems(events, posts)).toEqual([]);
    expect(await mediaProblems(events, blobs)).toEqual([]);
    expect(namedHashes(events).size).toBeGreaterThanOrEqual(ITEMS / 2);
    const listed = new Set(await Array.fromAsync(blobs.list()));
    expect(orphans.filter((hash) => listed.has(hash))).toEqual([]);

    // The checker finds what is planted.
    const end = events.find(isEnd)!;
    expect(await mediaProblems([...events, end], blobs)).toHaveLength(1);
    expect(
      await mediaProblems(
        events.filter((event) => event !== end),
        blobs,
      ),
    ).toHaveLength(1);
    const post = posts.find(({ data }) => JSON.stringify(data).includes('"media_id"'))!;
    expect(postProblems(events, [...posts, post])).toHaveLength(1);
    const others = posts.filter((one) => one !== post);
    expect(postProblems(events, others)).toHaveLength(1);
    const delivery = events.find(isDelivery)!;
    expect(postProblems([...events, delivery], posts)).toHaveLength(1);
    await blobs.remove(hashes[0]!, { putBeforeMs: Date.now() + 60_000 });
    expect(await mediaProblems(events, blobs)).toEqual([`${hashes[0]} is named and missing`]);
  },
  TIMEOUT_MS,
);
