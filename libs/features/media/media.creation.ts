import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';

import type { Channels } from '#libs/features/channels/index.ts';
import { type Knowledge, requireGraph } from '#libs/features/knowledge/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { EntityResult } from '#libs/platform/entity/index.ts';
import { commandContext, invalid } from '#libs/platform/http/index.ts';

import type { MediaItems } from './media.read.ts';
import type { createMediaBody } from './media.schemas.ts';
import type { Media, MediaCreated } from './media.ts';

/** Details that the creator of an item gives of its file. */
export type Description = Omit<MediaCreated, 'id' | 'sourceUrl' | 'file'>;

export function descriptionOf(given: Omit<z.output<typeof createMediaBody>, 'source_url'>): Description {
  const { name, description = null, knowledge_graph = null, channel = null, message = null } = given;
  return { name, description, knowledgeGraph: knowledge_graph, channel, message };
}

/** Details that members may give: knowledge concerns the organization as a whole. */
const NO_GRAPHS: OwnDestinations['knowledge'] = { graph: async () => null };

/** Entities that items of an organization may name. */
export interface OwnDestinations {
  readonly knowledge: Pick<Knowledge, 'graph'>;
  readonly channels: Pick<Channels, 'entities'>;
}

/**
 * Checks the graph and the channel that a request names.
 *
 * @throws ValidationFailure 422 for those that the organization does not have, and for an archived channel
 */
export async function requireDestinations(
  { principal: { organizationId, isMember } }: FastifyRequest,
  { knowledge, channels }: OwnDestinations,
  named: Pick<z.output<typeof createMediaBody>, 'knowledge_graph' | 'channel'>,
  place: 'body' | 'query' = 'body',
): Promise<void> {
  const graphs = isMember ? NO_GRAPHS : knowledge;
  await requireGraph(graphs, organizationId, named.knowledge_graph ?? null, place);
  const { channel: id = null } = named;
  if (id === null) return;
  const channel = await channels.entities.find(organizationId, id);
  if (channel === null) throw invalid([place, 'channel'], 'there is no such channel', id);
  if (channel.archivedAt !== null) throw invalid([place, 'channel'], 'the channel is archived', id);
}

/** @param id default: that of the command */
export function createItem(
  request: FastifyRequest,
  { media }: { readonly media: MediaItems },
  given: Omit<MediaCreated, 'id'>,
  id?: EntityId,
): Promise<EntityResult<Media>> {
  const context = commandContext(request);
  const itemId = id ?? context.commandId;
  return media.create(context, itemId, { type: 'MediaCreated.v1', data: { ...given, id: itemId } });
}
