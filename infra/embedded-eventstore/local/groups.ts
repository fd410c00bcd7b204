// Consumer groups for members in the process of the event store's thread. Other members use gRPC; the groups are the same.
import { randomUUID } from 'node:crypto';
import { messageOf } from '#libs/kernel/faults.ts';
import { status } from '@grpc/grpc-js';
import { CallError } from '../grpc/errors.ts';
import type { EmbeddedGroup, EmbeddedGroupSettings, EmbeddedParkedEvent } from '#libs/platform/embedded-log/index.ts';
import type { EventLog } from '../log/event-log.ts';
import type { Consumer } from '../persistent-subscriptions/consumer.ts';
import { ALL, type GroupSettings } from '../persistent-subscriptions/group-settings.ts';
import type { Group } from '../persistent-subscriptions/group.ts';
import type { Groups } from '../persistent-subscriptions/groups.ts';
import type { FromStore, LocalCalls } from './messages.ts';

type GroupCalls = Pick<
  LocalCalls,
  'groups' | 'createGroup' | 'updateGroup' | 'deleteGroup' | 'parked' | 'replayParked'
>;

const nameOf = (group: string) => ({ source: ALL, group });

export function groupCalls(log: EventLog, groups: Groups): GroupCalls {
  return {
    groups: async () => groups.list(ALL).map(localGroup),
    async createGroup(name, settings) {
      const filter = { on: 'type', regex: settings.types, prefixes: [] } as const;
      await unless(status.ALREADY_EXISTS, groups.create(nameOf(name), settingsOf(settings), filter));
    },
    updateGroup: (name, settings) => groups.update(nameOf(name), settingsOf(settings)),
    async deleteGroup(name) {
      await unless(status.NOT_FOUND, groups.delete(nameOf(name)));
    },
    parked: async (name, limit) => parkedEvents(log, groups.get(nameOf(name)), limit),
    replayParked: async (name) => groups.get(nameOf(name)).replayParked(undefined),
  };
}

/** Members elsewhere may have made the same change at the same time. */
async function unless(code: status, change: Promise<unknown>): Promise<void> {
  await change.catch((error: unknown) => {
    if (!(error instanceof CallError) || error.code !== code) throw error;
  });
}

function localGroup(group: Group): EmbeddedGroup {
  const { settings } = group.record;
  return {
    name: group.record.group,
    messageTimeoutMs: settings.messageTimeoutMs,
    startFrom: typeof settings.startFrom === 'number' ? settings.startFrom : 0,
    checkpoint: group.checkpointer.written ?? null,
    members: group.consumers.length,
    inFlight: group.inFlightCount,
    waiting: group.queueLength + group.retries.length,
    outstanding: group.inFlightCount + group.parkingCount,
    parked: group.parked.count,
  };
}

/** As the process would send them to any event store. */
function settingsOf({ messageTimeoutMs, startFrom }: EmbeddedGroupSettings): GroupSettings {
  return {
    startFrom: startFrom === 0 ? 'start' : startFrom,
    resolveLinks: false,
    extraStatistics: false,
    messageTimeoutMs,
    // Only members park events, because they know the reason.
    maxRetryCount: 2 ** 31 - 1,
    checkpointAfterMs: 1000,
    minCheckpointCount: 1,
    maxCheckpointCount: 1000,
    maxSubscriberCount: 0,
    liveBufferSize: 500,
    readBatchSize: 100,
    historyBufferSize: 500,
    strategy: 'Pinned',
  };
}

function parkedEvents(log: EventLog, { parked: { stream } }: Group, limit: number): EmbeddedParkedEvent[] {
  const links = log.readStream({ stream, from: 0, direction: 'forwards', limit }).events;
  return links.map((link) => {
    const event = log.resolveLink(link);
    return {
      event: event && { stream: event.stream, revision: event.revision, type: event.type },
      createdMs: link.createdMs,
      metadata: link.metadata.toString('utf8'),
    };
  });
}

/** The members of one port. */
export class LocalMembers {
  readonly #groups: Groups;
  readonly #maxBytes: number;
  readonly #send: (item: FromStore) => void;
  readonly #members = new Map<number, { readonly group: Group; readonly consumer: Consumer }>();

  constructor(
    { groups, maxInFlightBytes }: { readonly groups: Groups; readonly maxInFlightBytes: number },
    send: (item: FromStore) => void,
  ) {
    this.#groups = groups;
    this.#maxBytes = maxInFlightBytes;
    this.#send = send;
  }

  /** @throws CallError without the group, or when it is full */
  join(member: number, name: string, bufferSize: number): void {
    const group = this.#groups.get(nameOf(name));
    const consumer = group.connect({
      id: randomUUID(),
      send: ({ id, event }) => this.#send(['delivery', member, id, event?.position ?? -1]),
      fail: (error) => {
        this.leave(member);
        this.#send(['dropped', member, messageOf(error)]);
      },
      bufferSize,
      maxBytes: this.#maxBytes,
      from: 'this process',
      connectionName: '',
    });
    this.#members.set(member, { group, consumer });
    group.pump();
  }

  /** Its unanswered events are delivered to others. */
  leave(member: number): void {
    const left = this.#members.get(member);
    this.#members.delete(member);
    left?.group.disconnect(left.consumer);
  }

  leaveAll(): void {
    for (const member of this.#members.keys()) this.leave(member);
  }

  acknowledge(member: number, ids: readonly string[]): void {
    const { group, consumer } = this.#members.get(member) ?? {};
    if (group && consumer) group.acknowledge(consumer, ids);
  }

  park(member: number, id: string, reason: string): void {
    const { group, consumer } = this.#members.get(member) ?? {};
    if (group && consumer) group.refuse(consumer, [id], 'park', reason);
  }
}
