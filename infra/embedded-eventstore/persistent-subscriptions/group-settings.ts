// What a group is: its name, settings and filter, as they are kept on disk.
//
// WARNING: the shape of `groupRecord` is stored. Add fields as optional only.
import { z } from 'zod';

/** The source of a group on everything. */
export const ALL = '$all';

/** `source` is a stream name or `$all`. */
export type GroupName = { source: string; group: string };

export const strategyNames = ['DispatchToSingle', 'RoundRobin', 'Pinned'] as const;

const startFrom = z.union([z.literal('start'), z.literal('end'), z.number().int().nonnegative()]);

const groupSettings = z.object({
  /** Revision or position; inclusive. */
  startFrom,
  resolveLinks: z.boolean(),
  extraStatistics: z.boolean(),
  /** 0: never. */
  messageTimeoutMs: z.number(),
  maxRetryCount: z.number(),
  checkpointAfterMs: z.number(),
  minCheckpointCount: z.number(),
  maxCheckpointCount: z.number(),
  /** 0: any number. */
  maxSubscriberCount: z.number(),
  /** Kept and reported only: live events are read from the log like old ones. */
  liveBufferSize: z.number(),
  readBatchSize: z.number(),
  historyBufferSize: z.number(),
  strategy: z.enum(strategyNames),
});

const groupFilter = z.object({
  on: z.enum(['type', 'stream']),
  regex: z.string(),
  prefixes: z.array(z.string()).readonly(),
});

const groupRecord = z.object({
  source: z.string(),
  group: z.string(),
  settings: groupSettings,
  filter: groupFilter.optional(),
  /** Offset of the first event to deliver while there is no checkpoint (the stored name); `end` is fixed at creation. */
  firstPlace: z.number().int().nonnegative(),
});

export type StartFrom = z.infer<typeof startFrom>;
export type GroupSettings = z.infer<typeof groupSettings>;
export type GroupRecord = z.infer<typeof groupRecord>;

/** @throws ZodError for what this version did not write */
export function parseGroupRecord(json: unknown): GroupRecord {
  return groupRecord.parse(json);
}

/** The stream name of a source; undefined for `$all`. */
export function streamOfSource(source: string): string | undefined {
  return source === ALL ? undefined : source;
}

/** The stream into which a group parks, as links. */
export function parkedStreamOf({ source, group }: GroupName): string {
  return `$persistentsubscription-${source}::${group}-parked`;
}

/** Whether a group parks into this stream, or it is the metadata of such a stream. */
export function isParkedStream(stream: string): boolean {
  return stream.startsWith('$persistentsubscription-') || stream.startsWith('$$$persistentsubscription-');
}
