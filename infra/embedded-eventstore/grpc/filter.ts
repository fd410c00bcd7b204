// Server-side filters of `$all`: by event type or stream name, with prefixes or a regular expression.
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import type { StoredEvent } from '../log/stored-event.ts';
import { invalidArgument } from './errors.ts';

export type EventFilter = (event: Pick<StoredEvent, 'type' | 'stream'>) => boolean;

/** Search window in events, for clients that send none. */
const DEFAULT_WINDOW = 32;

export type FilterOptions = {
  matches: EventFilter;
  /** A checkpoint is due after this many events, matching or not. */
  checkpointInterval: number;
};

/** The text to match, and a regular expression, or prefixes when that is empty. */
export type FilterExpression = { on: 'type' | 'stream'; regex: string; prefixes: readonly string[] };

/** @throws CallError for an expression that is empty or not a regular expression */
export function createFilter({ on, regex, prefixes }: FilterExpression): EventFilter {
  if (regex !== '') {
    const pattern = parseRegex(regex);
    return (event) => pattern.test(event[on]);
  }
  if (prefixes.length === 0) throw invalidArgument('A filter needs a regular expression or prefixes.');
  return (event) => prefixes.some((prefix) => event[on].startsWith(prefix));
}

type ExpressionOptions = Pick<
  ReadReq.Options.FilterOptions,
  'hasStreamIdentifier' | 'getStreamIdentifier' | 'getEventType'
>;

export function parseExpression(options: ExpressionOptions): FilterExpression {
  const on = options.hasStreamIdentifier() ? 'stream' : 'type';
  const expression = on === 'stream' ? options.getStreamIdentifier() : options.getEventType();
  return { on, regex: expression?.getRegex() ?? '', prefixes: expression?.getPrefixList() ?? [] };
}

export function parseFilter(options: ReadReq.Options.FilterOptions): FilterOptions {
  const window = options.hasMax() ? options.getMax() : DEFAULT_WINDOW;
  return {
    matches: createFilter(parseExpression(options)),
    checkpointInterval: Math.max(1, window) * Math.max(1, options.getCheckpointintervalmultiplier()),
  };
}

function parseRegex(source: string): RegExp {
  try {
    return new RegExp(source);
  } catch {
    throw invalidArgument(`The filter is not a regular expression: ${source}`);
  }
}
