/* Encodes requests of reads, of subscriptions to `$all`, and of consumer groups, all with ids as strings. */
import type { GlobalPosition, StreamRevision } from '#libs/kernel/event.ts';
import { encode, type Field, message, number, text } from '#libs/platform/protobuf/index.ts';

export interface ReadRequest {
  /** All streams without it. */
  readonly stream?: string;
  /** Inclusive for a read, exclusive for a subscription. */
  readonly from: StreamRevision | GlobalPosition | 'start' | 'end';
  readonly direction?: 'forwards' | 'backwards';
  /** Links come with the events that they lead to. */
  readonly resolvesLinks?: boolean;
  /** A subscription to the streams with these prefixes, or to all but system streams, or the number of events to read. */
  readonly wanted: { readonly streamPrefixes: readonly string[] | 'all' } | number;
}

const NOTHING: readonly Field[] = [];
/** Of ids. */
const AS_STRING = message(2, NOTHING);
const NO_SYSTEM_STREAM = '^[^$]';
/** Number of events without a match after which the server sends a checkpoint. */
const CHECKPOINT_EVERY = 256;

/** `event_store.client.streams.ReadReq` */
export function encodeRead({ stream, from, direction = 'forwards', wanted, resolvesLinks }: ReadRequest): Buffer {
  const source = stream === undefined ? message(2, [startOf(from, 1)]) : message(1, [nameOf(stream), startOf(from, 2)]);
  return encode([
    message(1, [
      source,
      number(3, direction === 'forwards' ? 0 : 1),
      number(4, resolvesLinks === true ? 1 : 0),
      ...(typeof wanted === 'number'
        ? [number(5, wanted), message(8, NOTHING)]
        : [message(6, NOTHING), filterBy(wanted.streamPrefixes)]),
      message(9, [AS_STRING]),
    ]),
  ]);
}

function nameOf(stream: string): Field {
  return message(1, [text(3, stream)]);
}

/** @param first number of the field of a revision or a position; the fields of the start and of the end have the next numbers */
function startOf(from: ReadRequest['from'], first: number): Field {
  if (from === 'start') return message(first + 1, NOTHING);
  if (from === 'end') return message(first + 2, NOTHING);
  if (typeof from === 'number') return number(first, from);
  return message(first, [number(1, Number(from.commit)), number(2, Number(from.prepare))]);
}

function filterBy(prefixes: readonly string[] | 'all'): Field {
  const expression = prefixes === 'all' ? [text(1, NO_SYSTEM_STREAM)] : prefixes.map((prefix) => text(2, prefix));
  return message(7, [message(1, expression), number(3, CHECKPOINT_EVERY), number(5, 1)]);
}

/* `event_store.client.persistent_subscriptions.ReadReq` */

export function encodeJoin(group: string, bufferSize: number): Buffer {
  return encode([message(1, [text(2, group), number(3, bufferSize), message(4, [AS_STRING]), message(5, NOTHING)])]);
}

export function encodeAcknowledgement(ids: readonly string[]): Buffer {
  return encode([message(2, idsOf(ids))]);
}

export function encodeParking(id: string, reason: string): Buffer {
  return encode([message(3, [...idsOf([id]), number(3, 1), text(4, reason)])]);
}

function idsOf(ids: readonly string[]): Field[] {
  return ids.map((id) => message(2, [text(2, id)]));
}
