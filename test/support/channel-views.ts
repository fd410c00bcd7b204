/** Channels with all their contents, as REST shows them and as a plain fold of their events computes them. */
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

function parsed(document: Buffer): unknown {
  const { id, ...rest } = asRecord(JSON.parse(document.toString()));
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
  const list = async (includeIncomplete: boolean) => {
    const filter = { order: 'asc', includeIncomplete, includeToolCallUpdates: false } as const;
    const page = { size: MOST, offset: 0, after: null };
    const found = await channels.queries.list(organizationId, channelId, filter, page, reader);
    return { items: found?.items.map(parsed), total: found?.total };
  };
  const below = async (span: string) => {
    const audience = { reader, includeIncomplete: true };
    return (await channels.queries.descendants(organizationId, channelId, span, audience)).map(parsed);
  };
  return {
    channel: channel && JSON.parse(channel.json.toString()),
    all: await list(true),
    complete: await list(false),
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
