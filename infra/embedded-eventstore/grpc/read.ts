// Streams.Read: pages of a stream or of `$all`, once or as a catch-up subscription. A subscription confirms, sends the
// events after its start and `caught_up`, then each commit. It reads live events from the log like old ones, so a slow
// client costs no memory.
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import { randomUUID } from 'node:crypto';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { WakeUp } from '#libs/platform/lifecycle/index.ts';
import { logSource, type Direction, type EventLog, type LogSource } from '../log/event-log.ts';
import type { StoredEvent } from '../log/stored-event.ts';
import { invalidArgument, streamDeleted } from './errors.ts';
import { parseFilter, type FilterOptions } from './filter.ts';
import type { Outgoing } from './outgoing.ts';
import { parseStreamName } from './proposed-event.ts';
import {
  caughtUpResponse,
  checkpointResponse,
  confirmationResponse,
  eventResponse,
  lastStreamPositionResponse,
  streamNotFoundResponse,
} from './read-responses.ts';

/** Records examined at once. */
const PAGE_SIZE = 128;

export type ReadPlan = {
  /** `page` throws CallError for a tombstoned stream. */
  source: LogSource;
  /** Undefined when `$all` is read. */
  stream: string | undefined;
  /** Inclusive for reads, exclusive for subscriptions; undefined: from the beginning. */
  from: number | 'end' | undefined;
  direction: Direction;
  filter: FilterOptions | undefined;
  /** Whether the client knows messages of positions; some clients crash at them. */
  sendsPositions: boolean;
  encode(event: StoredEvent): Buffer;
};

/** Serves one Read call to its end. @throws CallError */
export async function read(log: EventLog, request: ReadReq, out: Outgoing): Promise<void> {
  const options = request.getOptions();
  if (!options) throw invalidArgument('A read needs options.');
  const plan = planRead(log, options);
  if (options.hasSubscription()) return subscribe(plan, out);
  await readPages(log, plan, Number(options.getCount()), out);
  out.end();
}

/** @throws CallError for an invalid name or filter */
function planRead(log: EventLog, options: ReadReq.Options): ReadPlan {
  const stream = options.getAll() ? undefined : parseStreamName(options.getStream()?.getStreamIdentifier());
  const source = logSource(log, stream);
  const filter = options.getFilter();
  const structuredIds = options.getUuidOption()?.hasStructured() ?? false;
  const resolveLinks = options.getResolveLinks();
  return {
    stream,
    source: {
      ...source,
      page: (...request) => {
        if (stream !== undefined && log.streamInfo(stream).status === 'deleted') throw streamDeleted(stream);
        return source.page(...request);
      },
    },
    from: parseFrom(options),
    direction: options.getReadDirection() === 0 ? 'forwards' : 'backwards',
    filter: filter && parseFilter(filter),
    sendsPositions: (options.getControlOption()?.getCompatibility() ?? 0) > 0,
    encode: (event) =>
      resolveLinks && event.isLink
        ? eventResponse({ event: log.resolveLink(event), link: event }, { structuredIds })
        : eventResponse({ event }, { structuredIds }),
  };
}

function parseFrom(options: ReadReq.Options): number | 'end' | undefined {
  const [all, stream] = [options.getAll(), options.getStream()];
  if ((all ?? stream)?.hasEnd()) return 'end';
  if (all) return all.hasPosition() ? Number(all.getPosition()?.getCommitPosition()) : undefined;
  return stream?.hasRevision() ? Number(stream.getRevision()) : undefined;
}

async function readPages(log: EventLog, plan: ReadPlan, count: number, out: Outgoing): Promise<void> {
  const { source, direction, stream, sendsPositions } = plan;
  let left = count;
  let page = source.page(firstOffset(plan), direction, Math.min(PAGE_SIZE, left));
  if (stream !== undefined && log.streamInfo(stream).status === 'missing') {
    out.write(streamNotFoundResponse(stream));
    return;
  }
  while (left > 0) {
    for (const event of page.events) {
      if (left === 0 || out.isClosed) break;
      if (plan.filter && !plan.filter.matches(event)) continue;
      left--;
      if (!out.write(plan.encode(event))) await out.ready();
    }
    if (page.next === undefined || left === 0 || out.isClosed) break;
    await nextIteration();
    page = source.page(page.next, direction, plan.filter ? PAGE_SIZE : Math.min(PAGE_SIZE, left));
  }
  if (stream === undefined || out.isClosed || !sendsPositions) return;
  const { lastRevision } = log.streamInfo(stream);
  if (lastRevision !== undefined) out.write(lastStreamPositionResponse(lastRevision));
}

/** Backwards, `$all` begins before the given position, a stream at the given revision: as on the real server. */
function firstOffset({ from = 0, direction, stream }: ReadPlan): number | 'end' {
  return from !== 'end' && direction === 'backwards' && stream === undefined ? from - 1 : from;
}

/** Serves a subscription until the call is over. @throws CallError when the stream is tombstoned */
export async function subscribe({ source, filter, from, encode }: ReadPlan, out: Outgoing): Promise<void> {
  let next = from === 'end' ? source.end() : from === undefined ? 0 : from + 1;
  const checkpoints = filter && sendCheckpoints(filter.checkpointInterval, next - 1, out);
  const commits = new WakeUp();
  const unsubscribe = source.onCommit(commits.wake);
  out.closed.addEventListener('abort', commits.wake);
  let isCaughtUp = false;
  out.write(confirmationResponse(randomUUID()));
  try {
    while (!out.isClosed) {
      const page = source.page(next, 'forwards', PAGE_SIZE);
      for (const event of page.events) {
        if (!filter || filter.matches(event)) out.write(encode(event));
        checkpoints?.considered(event.position);
        await out.ready();
        if (out.isClosed) return;
        next = source.offsetOf(event) + 1;
      }
      if (page.next !== undefined) {
        next = page.next;
        await nextIteration();
        continue;
      }
      if (!isCaughtUp) {
        isCaughtUp = true;
        checkpoints?.caughtUp();
        out.write(caughtUpResponse());
      }
      await commits.sleep();
    }
  } finally {
    unsubscribe();
  }
}

/** Sends a checkpoint after each `interval` considered events, and once when the subscription has caught up. */
function sendCheckpoints(interval: number, start: number, out: Outgoing) {
  let position = Math.max(0, start);
  let sinceLast = 0;
  let sent: number | undefined;
  const send = (): void => {
    sinceLast = 0;
    sent = position;
    out.write(checkpointResponse(position));
  };
  return {
    considered(at: number): void {
      position = at;
      if (++sinceLast >= interval) send();
    },
    caughtUp(): void {
      if (sent !== position) send();
    },
  };
}
