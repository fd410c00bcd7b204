import { setImmediate } from 'node:timers/promises';

import { z } from 'zod';

import type { ChannelSequence } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import {
  type HttpApp,
  HttpError,
  idParam,
  invalid,
  type MemberRoute,
  notFound,
  openPage,
  pageMetaSchema,
  pageQuery,
  type Principal,
  routesTagged,
  sendPage,
  text,
  timestamp,
} from '#libs/platform/http/index.ts';

import type { ChannelAccess } from '../access.ts';
import { facetsOfList } from '../channel/channel.read.ts';
import type { Channels } from '../channels.ts';
import { interactionSchema } from '../interaction/interaction.schemas.ts';
import { readerOf } from '../interaction/reads/present.ts';

import { highlightsOf } from './highlights.ts';
import { type FoundMessages, SORTS } from './message-index.ts';
import type { ChannelHead, MessageSearch } from './message-search.ts';
import { isSearchedRole, MAX_TEXT } from './message-text.ts';
import type { ResultKey } from './result-order.ts';

/** Results before a page without a cursor. */
const MAX_OFFSET = 10_000;
const CHANNELS_AT_A_TIME = 100;
/** Processor time of results before other work of the process gets its turn. */
const MAX_BUSY_MS = 10;

const searchQuery = z.object({
  q: text({
    min: 1,
    max: 1_000,
    description:
      'Words that a message must have, all of them, in any order. Inflections, longer words and, if no message has a word, slight misspellings match as well',
  }),
  channel_id: idParam('Only messages of this channel').optional(),
  created_after: timestamp({ description: 'Only messages created after this time, to the millisecond' }).optional(),
  created_before: timestamp({ description: 'Only messages created before this time, to the millisecond' }).optional(),
  sort: z.enum(SORTS).default('relevance').describe('The best matches first, or the newest messages'),
  ...pageQuery,
});

const highlightSchema = z
  .object({
    content_index: z.int().min(0).describe('Index of the item in `content`'),
    member: z.string().describe('Member of the item: `text`, `alt_text`, `meta_data.name` or `meta_data.description`'),
    offset: z.int().min(0).describe('Of the excerpt in the member, in UTF-16 code units'),
    parts: z
      .array(z.object({ text: z.string(), is_match: z.boolean() }).meta({ id: 'HighlightPart' }))
      .describe('The excerpt: plain text, not HTML'),
  })
  .meta({ id: 'Highlight' });

const foundPage = z
  .object({
    items: z.array(
      z
        .object({
          interaction: interactionSchema,
          score: z.number().nullable().describe('How well the message matches; null in a list of the newest'),
          highlights: z.array(highlightSchema).describe('At most three excerpts with words that match'),
        })
        .meta({ id: 'FoundInteraction' }),
    ),
    meta: pageMetaSchema,
  })
  .meta({ id: 'FoundInteractionPage' });

/** Of one channel, or of all that the caller may read. */
const OF_CHANNEL_OR_CALLER: MemberRoute = {
  channelOf: ({ query }) => (query as { readonly channel_id?: EntityId }).channel_id,
};

const cursorKey = z.tuple([z.number(), z.number(), z.number(), z.int(), z.string()]);

type Access = Pick<ChannelAccess, 'admitted'>;

const { reads } = routesTagged('interactions');

export function searchRoutes(app: HttpApp, channels: Channels, access: Access, messages: MessageSearch): void {
  app.get(
    '/api/v1/interactions/search',
    reads(
      {
        operationId: 'searchInteractions',
        summary: 'Search the messages of the channels that the caller may read',
        description: `Finds complete messages of users and agents as they are now, also in archived channels: by their texts, the alternative texts of custom content, and the names and descriptions of media; of longer messages by the first ${MAX_TEXT} characters. Further pages, by \`next_cursor\`, leave out messages that were posted after the first one.`,
        querystring: searchQuery,
        response: { 200: foundPage },
      },
      OF_CHANNEL_OR_CALLER,
    ),
    async (request, reply) => {
      const { size: _size, page: _page, cursor: _cursor, ...query } = request.query;
      const { principal } = request;
      const page = openPage(request, request.query, {
        ...query,
        caller: principal.isMember ? principal.principalId : null,
      });
      if (page.offset > MAX_OFFSET)
        throw invalid(['query', 'page'], `at most ${MAX_OFFSET} results can be skipped`, page.page);
      const question = {
        query: query.q,
        afterMs: query.created_after === undefined ? null : Date.parse(query.created_after),
        beforeMs: query.created_before === undefined ? null : Date.parse(query.created_before),
        sort: query.sort,
        offset: page.offset,
        limit: page.size,
        after: keyOf(page.after),
      };
      const heads = await headsFor(channels, principal, query.channel_id);
      const found = await admittedMessages(access, principal, heads, (of) =>
        messages.search(principal.organizationId, of, question),
      );
      const documents = await Promise.all(found.hits.map((hit) => documentOf(channels, principal, hit)));
      const items: Buffer[] = [];
      let begunAt = performance.now();
      for (const [index, document] of documents.entries()) {
        const hit = found.hits[index];
        const item = hit === undefined || document === null ? null : itemOf(document, hit, found, query.sort);
        if (item !== null) items.push(item);
        // A hundred long messages take seconds, in which other requests are served.
        if (performance.now() - begunAt < MAX_BUSY_MS) continue;
        await setImmediate();
        begunAt = performance.now();
      }
      const last = found.hits.at(-1);
      return sendPage(
        reply,
        items,
        page.meta({ ...found, last: last === undefined ? null : cursorOf(last, found.upToMs) }),
      );
    },
  );
}

/** The channels that the caller may read, by the read model, also archived ones. @throws HttpError 404 without such a channel */
async function headsFor(
  { entities }: Channels,
  { organizationId, principalId, isMember }: Principal,
  channelId: EntityId | undefined,
): Promise<readonly ChannelHead[]> {
  if (channelId !== undefined) {
    const head = await entities.revision(organizationId, channelId);
    if (head === null) throw notFound();
    return [[channelId, head]];
  }
  const participant = isMember ? [principalId] : undefined;
  const of = (archived: boolean) => entities.revisions(organizationId, facetsOfList({ archived, participant }));
  return (await Promise.all([of(false), of(true)])).flat();
}

/**
 * Finds messages in the channels that the log admits the caller to. Read models may lag, so a search that finds anything in
 * another channel is repeated without that channel: nothing of it has an effect, also not on counts and corrections.
 */
async function admittedMessages(
  access: Access,
  principal: Principal,
  heads: readonly ChannelHead[],
  search: (heads: readonly ChannelHead[]) => Promise<FoundMessages | null>,
): Promise<FoundMessages> {
  for (let readable = heads; ;) {
    const found = await search(readable);
    if (found === null)
      throw new HttpError(422, 'query_too_broad', 'The query matches too many messages: use rarer words');
    const refused = principal.isMember ? await refusedOf(access, principal, found.channelIds) : new Set();
    if (refused.size === 0) return found;
    readable = readable.filter(([id]) => !refused.has(id));
  }
}

/** A few at a time: a member may have thousands of channels. */
async function refusedOf(access: Access, principal: Principal, channelIds: readonly EntityId[]) {
  const refused = new Set<EntityId>();
  for (let at = 0; at < channelIds.length; at += CHANNELS_AT_A_TIME) {
    const some = channelIds.slice(at, at + CHANNELS_AT_A_TIME);
    const admitted = await access.admitted(principal, some);
    for (const id of some) if (!admitted.has(id)) refused.add(id);
  }
  return refused;
}

function documentOf(
  { queries }: Channels,
  principal: Principal,
  { channelId, sequence }: ResultKey,
): Promise<Buffer | null> {
  const ref = { channelId, sequence: sequence as ChannelSequence };
  const audience = { reader: readerOf(principal), includeIncomplete: false };
  return queries.interaction(principal.organizationId, ref, audience);
}

/** Null for a message that was deleted, or no longer has the words, since it was found. */
function itemOf(
  document: Buffer,
  { score }: ResultKey,
  { terms }: FoundMessages,
  sort: (typeof SORTS)[number],
): Buffer | null {
  const shown = JSON.parse(document.toString()) as { readonly content: unknown; readonly content_role: unknown };
  const highlights = isSearchedRole(shown.content_role) ? highlightsOf(shown.content, new Set(terms)) : null;
  if (highlights === null) return null;
  const others = JSON.stringify({ score: sort === 'relevance' ? score : null, highlights });
  return Buffer.concat([Buffer.from('{"interaction":'), document, Buffer.from(`,${others.slice(1)}`)]);
}

function cursorOf({ score, atMs, sequence, channelId }: ResultKey, upToMs: number): string {
  return JSON.stringify([upToMs, score, atMs, sequence, channelId]);
}

function keyOf(cursor: string | null): (ResultKey & { readonly upToMs: number }) | null {
  if (cursor === null) return null;
  const [upToMs, score, atMs, sequence, channelId] = cursorKey.parse(JSON.parse(cursor));
  return { upToMs, score, atMs, sequence, channelId };
}
