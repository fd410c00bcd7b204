/** Checks the log of media items and the files that it names; it never queries the system. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';

import type { BlobStore } from '#libs/platform/blobs/index.ts';

import type { LogEvent } from './log-reader.ts';

export function isEnd({ type }: LogEvent): boolean {
  return type === 'MediaProcessed.v1' || type === 'MediaFailed.v1';
}

export function isDelivery({ type }: LogEvent): boolean {
  return type === 'MediaDelivered.v1';
}

/** Hashes that the events name, in whatever field. */
export function namedHashes(log: readonly LogEvent[]): Set<string> {
  const found = log.flatMap(({ data }) => [...JSON.stringify(data).matchAll(/[0-9a-f]{64}/g)]);
  return new Set(found.map(([hash]) => hash));
}

/** One line per disagreement; empty when all is well. */
export async function mediaProblems(log: readonly LogEvent[], blobs: BlobStore): Promise<string[]> {
  const items = [...Map.groupBy(log, ({ stream }) => stream)].flatMap(([stream, events]) => problemsOf(stream, events));
  const files = await Promise.all(
    [...namedHashes(log)].map(async (hash) => {
      const bytes = await blobs.size(hash);
      const digest = bytes === null ? null : await blobs.withFile({ hash, bytes }, sha256);
      if (digest === null) return [`${hash} is named and missing`];
      return digest === hash ? [] : [`${hash} has another content`];
    }),
  );
  return [...items, ...files.flat()];
}

async function sha256(path: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(path))
    .digest('hex');
}

/**
 * Whether each item that names a channel was posted there exactly once.
 *
 * @param channels the log of the channels
 * @returns one line per disagreement
 */
export function postProblems(log: readonly LogEvent[], channels: readonly LogEvent[]): string[] {
  const posts = new Map<string, number>();
  for (const { stream, data } of channels) {
    for (const [, id] of JSON.stringify(data).matchAll(/"media_id":"([^"]+)"/g)) {
      posts.set(`${stream} ${id}`, (posts.get(`${stream} ${id}`) ?? 0) + 1);
    }
  }
  return [...Map.groupBy(log, ({ stream }) => stream)].flatMap(([stream, events]) => {
    const channel = events.find(({ type }) => type === 'MediaCreated.v1')?.data['channel'];
    if (typeof channel !== 'string') return [];
    const count = posts.get(`channel-${channel} ${stream.slice('media-'.length)}`) ?? 0;
    const deliveries = events.filter(isDelivery);
    return [
      ...(count === 1 ? [] : [`${stream} was posted ${count} times`]),
      ...(deliveries.length === 1 ? [] : [`${stream} was delivered ${deliveries.length} times`]),
      ...deliveries
        .filter(({ data }) => data['problem'] !== null || typeof data['interactionId'] !== 'string')
        .map(({ data }) => `${stream} was not posted: ${data['problem']}`),
    ];
  });
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
