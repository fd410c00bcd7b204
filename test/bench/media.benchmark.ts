/** Photos from their upload until their previews are ready, against sharp alone, which writes the same previews. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import sharp from 'sharp';
import { request } from 'undici';

import { createApiKey } from '#libs/platform/http/index.ts';

import type { Benchmark, Sample } from './benchmark.ts';
import { askOnce, cpuSecondsOf, startParley } from './child-process.ts';

export interface PreviewTask {
  readonly paths: readonly string[];
  /** The first of them do not count. */
  readonly warmUp: number;
}

const PHOTOS = 80;
const WARM_UP = 8;
const UPLOADS_AT_ONCE = 8;

export const mediaBenchmark: Benchmark = {
  name: 'media',
  rows: [
    {
      title: 'photos of 12 megapixels, from upload to Ready; sharp alone',
      ours: 'parley',
      theirs: 'sharp',
      figure: 'rate',
      unit: 'images/s',
      goal: { atLeast: 0.7 },
    },
  ],
  async prepare({ amount }) {
    const folder = await mkdtemp(join(tmpdir(), 'parley-bench-photos-'));
    const task = { paths: await writePhotos(folder, WARM_UP + Math.round(PHOTOS * amount)), warmUp: WARM_UP };
    return {
      sides: {
        parley: () => upload(task),
        async sharp() {
          const { rate, cpuMicros } = await askOnce<{ rate: number; cpuMicros: number }>(
            'sides/bare-sharp.process.ts',
            task,
          );
          return { figures: { rate, cpuMicros } };
        },
      },
      cleanUp: () => rm(folder, { recursive: true, force: true }),
    };
  },
};

/** Of 4,000 x 3,000 pixels, to be shown upright, about 5 MB each. Different contents: equal files are stored once. */
async function writePhotos(folder: string, count: number): Promise<readonly string[]> {
  const noise = { type: 'gaussian', mean: 128, sigma: 50 } as const;
  const blurred = await sharp({ create: { width: 1_000, height: 750, channels: 3, background: '#000', noise } })
    .resize(4_000, 3_000)
    .png({ compressionLevel: 0 })
    .toBuffer();
  const photo = await sharp(blurred).withMetadata({ orientation: 6 }).jpeg({ quality: 90 }).toBuffer();
  const paths = Array.from({ length: count }, (_, index) => join(folder, `${index}.jpg`));
  for (const path of paths) await writeFile(path, Buffer.concat([photo, Buffer.from(path)]));
  return paths;
}

async function upload({ paths, warmUp }: PreviewTask): Promise<Sample> {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-bench-media-'));
  const apiKey = createApiKey();
  const parley = await startParley(dataDir, apiKey);
  try {
    const url = new URL('/api/v1/media/', parley.url);
    await uploadAll(paths.slice(0, warmUp), url, apiKey);
    const count = paths.length - warmUp;
    const cpuBefore = await cpuSecondsOf(parley.pid);
    const started = performance.now();
    await uploadAll(paths.slice(warmUp), url, apiKey);
    const rate = (count * 1_000) / (performance.now() - started);
    const cpuMicros = (((await cpuSecondsOf(parley.pid)) - cpuBefore) * 1_000_000) / count;
    return { figures: { rate, cpuMicros } };
  } finally {
    await parley.stop();
    await rm(dataDir, { recursive: true, force: true });
  }
}

/** Resolves when all previews are ready. */
async function uploadAll(paths: readonly string[], url: URL, apiKey: string): Promise<void> {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/octet-stream' };
  // Not `fetch`, which takes three times the processor time for a file: the time of the client counts as Parley's.
  const ask = async (path: string, body?: Uint8Array): Promise<{ id: string; status: string }> => {
    const method = body === undefined ? 'GET' : 'POST';
    const response = await request(new URL(path, url), { method, headers, body: body ?? null });
    if (response.statusCode !== 200) {
      throw new Error(`${response.statusCode} for ${path}: ${await response.body.text()}`);
    }
    return (await response.body.json()) as { id: string; status: string };
  };
  const waiting = [...paths];
  const ids: string[] = [];
  const next = async (): Promise<void> => {
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
      ids.push((await ask('uploads', await readFile(path))).id);
    }
  };
  await Promise.all(Array.from({ length: UPLOADS_AT_ONCE }, next));
  for (const id of ids) {
    for (let { status } = await ask(id); status !== 'Ready'; { status } = await ask(id)) {
      if (status.startsWith('Failed')) throw new Error(status);
      await pause(100);
    }
  }
}
