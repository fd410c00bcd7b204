/** Writes the previews of images with sharp alone, as the inspection of media does. */
import { availableParallelism } from 'node:os';

import sharp from 'sharp';

import { answerTasks, timed } from '../child-process.ts';
import type { PreviewTask } from '../media.benchmark.ts';

sharp.cache(false);
sharp.concurrency(1);

answerTasks(async ({ paths, warmUp }: PreviewTask) => {
  await previewAll(paths.slice(0, warmUp));
  return timed(() => previewAll(paths.slice(warmUp)));
});

async function previewAll(paths: readonly string[]): Promise<number> {
  const waiting = [...paths];
  const next = async (): Promise<void> => {
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
      await sharp(path, { limitInputPixels: 25_000_000, failOn: 'truncated' })
        .autoOrient()
        .resize({ width: 1_024, height: 1_024, fit: 'inside', withoutEnlargement: true })
        .webp({ quality: 80 })
        .toFile(`${path}.webp`);
    }
  };
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), 4) }, next));
  return paths.length;
}
