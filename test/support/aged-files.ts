import { utimes } from 'node:fs/promises';
import { join } from 'node:path';

/** Sets the time of the blobs in `folder`, `<first two digits>/<hash>`, to ten days ago. */
export async function ageFiles(folder: string, hashes: readonly string[]): Promise<void> {
  const longAgo = new Date(Date.now() - 10 * 24 * 60 * 60_000);
  for (const hash of hashes) await utimes(join(folder, hash.slice(0, 2), hash), longAgo, longAgo);
}
