/** A channel as JSON lines: the channel, then its interactions by sequence, as REST answers them. */
import type { ChannelQueries } from '#libs/features/channels/index.ts';
import type { InteractionQueries } from '#libs/features/interactions/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';

const PAGE = 200;
/** As a service sees it: nothing is its own. */
const READER = { userId: null };
const FILTER = { order: 'asc', includeIncomplete: true, includeToolCallUpdates: false } as const;

/** Page by page, so a channel may be of any size. Yields nothing if the organization has no such channel. */
export async function* exportChannel(
  queries: { readonly channels: ChannelQueries; readonly interactions: InteractionQueries },
  organizationId: EntityId,
  channelId: EntityId,
): AsyncGenerator<Buffer> {
  const channel = await queries.channels.channel(organizationId, channelId);
  if (channel === null) return;
  yield channel.json;
  for (let after: string | null = null, more = true; more;) {
    const page = await queries.interactions.list(
      organizationId,
      channelId,
      FILTER,
      { size: PAGE, offset: 0, after },
      READER,
    );
    if (page === null) return;
    yield* page.items;
    after = page.last;
    more = page.hasNext && after !== null;
  }
}
