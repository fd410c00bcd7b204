/** Checks the log of media items and the files that it names; it never queries the system. */
import { createHash } from 'node:crypto';

import type { BlobStore } from '#libs/platform/blobs/index.ts';

import type { LogEvent } from './log-reader.ts';

export function isEnd({ type }: LogEvent): boolean {
  return type === 'MediaProcessed.v1' || type === 'MediaFailed.v1';
}

/** Hashes that the events name, in whatever field. */
export function namedHashes(log: readonly LogEvent[]): Set<string> {
  const found = log.flatMap(({ data }) => [...JSON.stringify(data).matchAll(/[0-9a-f]{64}/g)]);
  return new Set(found.map(([hash]) => hash));
}

/** One line per disagreement; empty when all is well. */
export async function mediaProblems(log: readonly LogEvent[], blobs: Pick<BlobStore, 'read'>): Promise<string[]> {
  const items = [...Map.groupBy(log, ({ stream }) => stream)].flatMap(([stream, events]) => problemsOf(stream, events));
  const files = await Promise.all(
    [...namedHashes(log)].map(async (hash) => {
      const content = await blobs.read(hash);
      if (content === null) return [`${hash} is named and missing`];
      const digest = createHash('sha256');
      for await (const chunk of content) digest.update(chunk);
      return digest.digest('hex') === hash ? [] : [`${hash} has another content`];
    }),
  );
  return [...items, ...files.flat()];
}

function problemsOf(stream: string, events: readonly LogEvent[]): string[] {
  const created = events.filter(({ type }) => type === 'MediaCreated.v1').length;
  const ends = events.filter(isEnd);
  return [
    ...(created === 1 ? [] : [`${stream} was created ${created} times`]),
    ...(ends.length === 1 ? [] : [`${stream} has ended ${ends.length} times`]),
    ...ends
      .filter(({ type }) => type !== 'MediaProcessed.v1')
      .map(({ data }) => `${stream} has failed: ${data['reason']}`),
  ];
}
