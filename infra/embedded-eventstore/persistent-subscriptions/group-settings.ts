// A consumer group as stored: name, settings, filter and checkpoint, and the errors about groups.
//
// WARNING: the shape of `groupRecord` is stored. Add fields as optional only.
import { status } from '@grpc/grpc-js';
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { CallError } from '../grpc/errors.ts';
import type { DurableKeyValue } from '../log/event-log.ts';

/** The source of a group on all streams. */
export const ALL = '$all';

/** `source` is a stream name or `$all`. */
export type GroupName = { source: string; group: string };

export const strategyNames = ['DispatchToSingle', 'RoundRobin', 'Pinned', 'PinnedByCorrelation'] as const;

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
  /** Stored and reported only: live events are read from the log like old ones. */
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

/** Identifies a group among all groups. */
export function keyOf({ source, group }: GroupName): string {
  return JSON.stringify([source, group]);
}

const GROUPS = 'persistent-subscriptions/group/';
const CHECKPOINTS = 'persistent-subscriptions/checkpoint/';

/** Groups and their checkpoints, beside the events. Writes resolve when they are on disk. */
export class GroupStore {
  #keyValue: DurableKeyValue;

  constructor(keyValue: DurableKeyValue) {
    this.#keyValue = keyValue;
  }

  /** @throws ZodError for a record in another format */
  all(): GroupRecord[] {
    return this.#keyValue
      .entries(GROUPS)
      .map(({ value }) => groupRecord.parse(JSON.parse(Buffer.from(value).toString())));
  }

  put(record: GroupRecord): Promise<void> {
    return this.#keyValue.put(GROUPS + hashOf(record), Buffer.from(JSON.stringify(record)));
  }

  async delete(name: GroupName): Promise<void> {
    await this.#keyValue.delete(GROUPS + hashOf(name));
    await this.#keyValue.delete(CHECKPOINTS + hashOf(name));
  }

  /** The last offset (revision or position) up to which everything is handled. */
  checkpoint(name: GroupName): number | undefined {
    const value = this.#keyValue.get(CHECKPOINTS + hashOf(name));
    if (!value) return undefined;
    const offset = Number(Buffer.from(value).toString());
    if (!Number.isSafeInteger(offset))
      throw new Error(`the checkpoint of ${name.source}::${name.group} is not a number`);
    return offset;
  }

  putCheckpoint(name: GroupName, offset: number): Promise<void> {
    return this.#keyValue.put(CHECKPOINTS + hashOf(name), Buffer.from(String(offset)));
  }
}

/** Names may be longer than LMDB's keys. */
function hashOf(name: GroupName): string {
  return createHash('sha256').update(keyOf(name)).digest('hex');
}

/** An error with the trailers from which the official client makes its typed errors. */
function groupError(code: status, exception: string, { source, group }: GroupName, message: string): CallError {
  return new CallError(code, message, { exception, 'stream-name': source, 'group-name': group });
}

export function groupDoesNotExist(name: GroupName): CallError {
  const message = `Subscription group ${name.group} on stream ${name.source} does not exist.`;
  return groupError(status.NOT_FOUND, 'persistent-subscription-does-not-exist', name, message);
}

export function groupExists(name: GroupName): CallError {
  const message = `Subscription group ${name.group} on stream ${name.source} exists.`;
  return groupError(status.ALREADY_EXISTS, 'persistent-subscription-exists', name, message);
}

export function maximumSubscribersReached(name: GroupName): CallError {
  const message = `Maximum subscriptions reached for subscription group ${name.group} on stream ${name.source}.`;
  return groupError(status.FAILED_PRECONDITION, 'maximum-subscribers-reached', name, message);
}

/** Ends a subscription when its group was updated, deleted or restarted. */
export function subscriptionDropped(name: GroupName): CallError {
  const message = `Subscription group ${name.group} on stream ${name.source} was dropped.`;
  return groupError(status.CANCELLED, 'persistent-subscription-dropped', name, message);
}
