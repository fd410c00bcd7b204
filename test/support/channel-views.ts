/** Channels with all their contents, as REST shows them and as a plain fold of their events computes them. */
import type { ChannelSequence } from '#libs/kernel/event.ts';
import type { Features } from '#services/features.ts';

import { foldChannel } from './channel-fold.ts';
import { ADA } from './channel-with-a-past.ts';
import type { PlayedChannel } from './command-history.ts';
import { foldAnnotatedInteractions, type InteractionResource } from './interaction-fold.ts';
import { asRecord, type LogEvent } from './log-reader.ts';
import { isAnnotation } from './past.ts';

/** How many interactions of a channel are compared. */
const MOST = 1_000;
/** Ids that are derived from positions, which the plain fold does not compute. */
const DERIVED = new Set(['interaction_id', 'message_event_id']);

function underived(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (key, member: unknown) => (DERIVED.has(key) ? undefined : member));
}

function parsed(document: Buffer | Readonly<Record<string, unknown>>): unknown {
  const { id, ...rest } = Buffer.isBuffer(document) ? asRecord(JSON.parse(document.toString())) : document;
  if (typeof id !== 'string' || !/^[A-Za-z0-9_-]{30}$/.test(id)) throw new TypeError(`no id: ${String(id)}`);
  return underived(rest);
}

/** Everything that a gateway shows of a channel, to Ada or to another user; trees only below `spans`. */
export async function readChannel(
  { channels }: Features,
  { organizationId, channelId }: PlayedChannel,
  spans: readonly string[],
  userId = ADA,
) {
  const reader = { userId };
  const channel = await channels.channel(organizationId, channelId);
  const list = async (
    includeIncomplete: boolean,
  ): Promise<{ documents: readonly Buffer[]; total: number | undefined }> => {
    const filter = { order: 'asc', includeIncomplete, includeToolCallUpdates: false } as const;
    const page = { size: MOST, offset: 0, after: null };
    const found = await channels.queries.list(organizationId, channelId, filter, page, reader);
    return { documents: found?.items ?? [], total: found?.total };
  };
  const shown = ({ documents, total }: Awaited<ReturnType<typeof list>>) => ({ items: documents.map(parsed), total });
  const all = await list(true);
  const sequences = new Map(
    all.documents.map((document) => {
      const { span_id: span, sequence } = asRecord(JSON.parse(document.toString()));
      return [span, sequence as ChannelSequence];
    }),
  );
  const audience = { reader, includeIncomplete: true, includeToolCallUpdates: false };
  const below = async (span: string) => {
    const sequence = sequences.get(span);
    if (sequence === undefined) return [];
    const tree = await channels.queries.nested(organizationId, { channelId, sequence }, audience);
    const { nested_interactions: nested } = asRecord(JSON.parse(tree?.toString() ?? '{}'));
    return (nested as readonly Record<string, unknown>[]).map(({ nested_interactions: none, ...document }) => {
      if (none !== null) throw new TypeError('a nested interaction has nested ones');
      return parsed(document);
    });
  };
  return {
    channel: channel && JSON.parse(channel.json.toString()),
    all: shown(all),
    complete: shown(await list(false)),
    trees: await Promise.all(spans.map(below)),
  };
}

/** The same, computed by the plain fold. */
export function foldedChannel({ channelId }: PlayedChannel, events: readonly LogEvent[], spans: readonly string[]) {
  const all = foldAnnotatedInteractions(channelId, events);
  const complete = all.filter((one) => one['complete']);
  const items = (found: readonly InteractionResource[]) => ({
    items: found.slice(0, MOST).map(underived),
    total: found.length,
  });
  return {
    channel: foldChannel(events.filter((event) => !event.type.startsWith('Interaction') && !isAnnotation(event))),
    all: items(all),
    complete: items(complete),
    trees: spans.map((span) => descendants(all, span).map(underived)),
  };
}

/** Parents come before their children. */
function descendants(all: readonly InteractionResource[], span: unknown): InteractionResource[] {
  const spans = new Set([span]);
  return all.filter((one) => spans.has(one['parent_span_id']) && spans.add(one['span_id']).size > 0);
}
