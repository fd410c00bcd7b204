// Streams.Read without a subscription: page after page until the count is
// reached or nothing is left.
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Direction, EventLog } from '../log/event-log.ts';
import type { StoredEvent } from '../log/stored-event.ts';
import { invalidArgument } from './errors.ts';
import { parseFilter } from './filter.ts';
import type { FilterOptions } from './filter.ts';
import type { Outgoing } from './outgoing.ts';
import { parseStreamName } from './proposed-event.ts';
import { eventResponse, streamNotFoundResponse } from './read-responses.ts';
import { allSource, streamSource } from './read-source.ts';
import type { ReadSource } from './read-source.ts';
import { subscribe } from './subscription.ts';

/** Records looked at in one go. */
export const PAGE_SIZE = 128;

export type ReadPlan = {
  source: ReadSource;
  /** Undefined when `$all` is read. */
  stream: string | undefined;
  /** Inclusive for reads, exclusive for subscriptions; undefined: from the beginning. */
  from: number | 'end' | undefined;
  direction: Direction;
  filter: FilterOptions | undefined;
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

function planRead(log: EventLog, options: ReadReq.Options): ReadPlan {
  const all = options.getAll();
  const stream = all ? undefined : parseStreamName(options.getStream()?.getStreamIdentifier());
  const filterOptions = options.getFilter();
  const structuredIds = options.getUuidOption()?.hasStructured() ?? false;
  const resolveLinks = options.getResolveLinks();
  return {
    stream,
    source: stream === undefined ? allSource(log) : streamSource(log, stream),
    from: parseFrom(options),
    direction: options.getReadDirection() === 0 ? 'forwards' : 'backwards',
    filter: filterOptions && parseFilter(filterOptions),
    encode: (event) =>
      resolveLinks && event.isLink
        ? eventResponse({ event: log.resolveLink(event), link: event }, structuredIds)
        : eventResponse({ event }, structuredIds),
  };
}

function parseFrom(options: ReadReq.Options): number | 'end' | undefined {
  const all = options.getAll();
  if (all) {
    if (all.hasEnd()) return 'end';
    return all.hasPosition() ? Number(all.getPosition()?.getCommitPosition()) : undefined;
  }
  const stream = options.getStream();
  if (stream?.hasEnd()) return 'end';
  return stream?.hasRevision() ? Number(stream.getRevision()) : undefined;
}

async function readPages(log: EventLog, plan: ReadPlan, count: number, out: Outgoing): Promise<void> {
  const { source, direction, stream } = plan;
  let from: number | 'end' | undefined = firstPlace(plan);
  let left = count;
  let page = source.page(from, direction, Math.min(PAGE_SIZE, left));
  if (stream !== undefined && log.streamInfo(stream).status === 'missing') {
    out.write(streamNotFoundResponse(stream));
    return;
  }
  while (left > 0) {
    for (const event of page.events) {
      if (left === 0 || out.isClosed) return;
      if (plan.filter && !plan.filter.matches(event)) continue;
      left--;
      if (!out.write(plan.encode(event))) await out.ready();
    }
    from = page.next;
    if (from === undefined || left === 0 || out.isClosed) return;
    await nextTurn();
    page = source.page(from, direction, plan.filter ? PAGE_SIZE : Math.min(PAGE_SIZE, left));
  }
}

/** Backwards, `$all` begins before the given position, a stream at the given revision: as on the real server. */
function firstPlace({ from, direction, stream }: ReadPlan): number | 'end' {
  if (from === 'end') return from;
  if (direction === 'forwards') return from ?? 0;
  if (stream === undefined) return (from ?? 0) - 1;
  return from ?? 0;
}
