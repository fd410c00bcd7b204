// A request of Streams.Read, understood.
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import type { Direction, EventLog } from '../log/event-log.ts';
import type { StoredEvent } from '../log/stored-event.ts';
import { parseFilter } from './filter.ts';
import type { FilterOptions } from './filter.ts';
import { parseStreamName } from './proposed-event.ts';
import { eventResponse } from './read-responses.ts';
import { allSource, streamSource } from './read-source.ts';
import type { ReadSource } from './read-source.ts';

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

/** @throws CallError for a name or filter that cannot be used */
export function planRead(log: EventLog, options: ReadReq.Options): ReadPlan {
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
