// Serves the calls of this process, in the thread of the event store.
import type { MessagePort } from 'node:worker_threads';
import { messageOf } from '#libs/kernel/faults.ts';
import type { EmbeddedOutcome, EmbeddedProposal } from '#libs/platform/embedded-log/index.ts';
import { bytes, encode } from '#libs/platform/protobuf/index.ts';
import { MAX_APPEND_BYTES, MAX_RECORDS_BYTES } from '../grpc/errors.ts';
import { requireUuid } from '../grpc/proposed-event.ts';
import type { Groups } from '../persistent-subscriptions/groups.ts';
import { groupCalls, LocalMembers } from './groups.ts';
import { LogWriteError, type EventLog, type Page, type WriteOutcome } from '../log/event-log.ts';
import type { ProposedEvent } from '../log/stored-event.ts';
import type { Call, FromStore, LocalCalls, PageBytes } from './messages.ts';

export type Served = {
  log: EventLog;
  groups: Groups;
  /** Bytes of events in flight to one member of a group. */
  maxInFlightBytes: number;
};

/** Answers calls until the port is closed. Returns a function that sends what is due and closes the port. */
export function serveLocal(served: Served, port: MessagePort): () => void {
  const { log } = served;
  let due: FromStore[] = [];
  let transferred: ArrayBuffer[] = [];
  /** The end of the log that the process knows; undefined until it listens. */
  let published: number | undefined;
  let flushing: NodeJS.Immediate | undefined;
  const flush = (): void => {
    flushing = undefined;
    if (published !== undefined && published !== log.lastPosition) {
      published = log.lastPosition;
      due.push(['end', published]);
    }
    if (due.length === 0) return;
    const [message, transfer] = [due, transferred];
    [due, transferred] = [[], []];
    port.postMessage(message, transfer);
  };
  /** @param item null: only the end of the log is due */
  const send = (item: FromStore | null): void => {
    if (item !== null) due.push(item);
    // After the listeners of a commit: its acknowledgements, the end of the log and deliveries are one message.
    flushing ??= setImmediate(flush);
  };
  const members = new LocalMembers(served, send);
  const calls = localCalls(served, members);
  const answer = async ([id, method, args]: Call): Promise<void> => {
    try {
      const result: unknown = await Reflect.apply(calls[method], calls, args);
      if (isPage(result)) transferred.push(result.bytes.buffer);
      if (id !== 0) send(['result', id, result]);
    } catch (error) {
      send(['error', id, messageOf(error)]);
    }
  };
  let stopPublishing: (() => void) | undefined;
  port.on('message', (message: readonly Call[]) => {
    // Not before: messages to a port that nothing uses would stay in memory.
    if (stopPublishing === undefined) {
      published = -1;
      stopPublishing = log.onCommit(() => send(null));
      send(['changes', log.changes.shared]);
    }
    for (const call of message) void answer(call);
  });
  port.on('close', () => {
    stopPublishing?.();
    members.leaveAll();
  });
  return () => {
    flush();
    port.close();
  };
}

function localCalls({ log, groups }: Served, members: LocalMembers): LocalCalls {
  return {
    append: (stream, expected, deadline, events) => append(log, stream, expected, deadline, events),
    async readStream(stream, from, direction, limit) {
      const { status } = log.streamInfo(stream);
      return { ...pageBytes(log.readStream({ stream, from, direction, limit })), status };
    },
    readAll: async (from, direction, limit) => pageBytes(log.readAll({ from, direction, limit })),
    async readPositions(positions) {
      const one = (from: number) => log.readAll({ from, direction: 'forwards', limit: 1 }).events;
      return pageBytes({ events: positions.flatMap(one), next: undefined });
    },
    ...groupCalls(log, groups),
    join: async (member, name, bufferSize) => members.join(member, name, bufferSize),
    leave: async (member) => members.leave(member),
    acknowledge: async (member, ids) => members.acknowledge(member, ids),
    park: async (member, id, reason) => members.park(member, id, reason),
  };
}

async function append(
  log: EventLog,
  stream: string,
  expected: number,
  deadline: number,
  events: readonly EmbeddedProposal[],
): Promise<EmbeddedOutcome> {
  const proposed = events.map(proposedEvent);
  const dataBytes = proposed.reduce((sum, { data }) => sum + data.length, 0);
  const allBytes = proposed.reduce((sum, { metadata }) => sum + metadata.length, dataBytes);
  if (dataBytes > MAX_APPEND_BYTES) return { kind: 'too-large', maxBytes: MAX_APPEND_BYTES };
  if (allBytes > MAX_RECORDS_BYTES) return { kind: 'too-large', maxBytes: MAX_RECORDS_BYTES };
  try {
    const request = { stream, expected: expected < 0 ? ('no_stream' as const) : expected, deadline, events: proposed };
    return outcomeOf(await log.append(request));
  } catch (error) {
    if (error instanceof LogWriteError) return { kind: 'failed', reason: error.message };
    throw error;
  }
}

function outcomeOf(outcome: WriteOutcome): EmbeddedOutcome {
  if (outcome.kind !== 'written') return { kind: outcome.kind };
  const { revision = -1, position = 0, createdMs = null } = outcome;
  return { kind: 'written', revision, position, createdMs };
}

function proposedEvent([id, type, data, metadata]: EmbeddedProposal): ProposedEvent {
  requireUuid(id);
  return { id, type, contentType: 'application/json', data: Buffer.from(data), metadata: Buffer.from(metadata) };
}

/** In memory of its own, which is handed over: not in a pool that other buffers share. */
function pageBytes({ events, next }: Page): PageBytes {
  const fields = events.map(({ frame }) => bytes(1, frame));
  return { bytes: encode(fields, Buffer.allocUnsafeSlow), next };
}

function isPage(result: unknown): result is PageBytes {
  return typeof result === 'object' && result !== null && 'bytes' in result;
}
