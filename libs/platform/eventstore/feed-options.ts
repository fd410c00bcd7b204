import type { FeedOptions } from './event-feed.ts';

/** Events in one item of a feed, where nobody says how many. */
export const DEFAULT_MAX_BATCH = 500;

/**
 * What every feed is asked for, shared or not.
 *
 * @throws TypeError for no prefix, an empty one, or one of system streams; RangeError for a batch of no size
 */
export function checkFeedOptions(options: Pick<FeedOptions<unknown>, 'streamPrefixes' | 'maxBatch'>): void {
  const { streamPrefixes, maxBatch = DEFAULT_MAX_BATCH } = options;
  if (streamPrefixes.length === 0) throw new TypeError('a feed needs a stream prefix');
  for (const prefix of streamPrefixes === 'all' ? [] : streamPrefixes) {
    if (prefix === '' || prefix.startsWith('$')) throw new TypeError(`no prefix for a feed: ${JSON.stringify(prefix)}`);
  }
  if (!Number.isSafeInteger(maxBatch) || maxBatch < 1) throw new RangeError(`no batch size: ${maxBatch}`);
}
