import { z } from 'zod';

import { httpUrl, idFilter, idParam, idReference, queryOption, text, shownTime } from '#libs/platform/http/index.ts';

export const mediaDeletionSchema = z
  .object({
    id: z.string(),
    name: z.string().nullable(),
    deleted_at: shownTime(),
    deleted_by: z.object({
      type: z.enum(['user', 'service', 'system']),
      id: z.string(),
      key_id: z.string().nullable().describe('As in frames'),
    }),
    sha256: z.string().nullable().describe('Of the file, in hex; null for an item without one'),
    bytes: z.int(),
    channel: z.string().nullable(),
    interaction_id: z.string().nullable(),
  })
  .meta({ id: 'MediaDeletion' });

const name = text({ max: 256, description: 'Name of the file' }).default('');
const knowledgeGraph = idReference({ description: 'Id of a knowledge graph, which learns from the text of the file' });
const description = text({ max: 4_096 });
const channel = idReference({ description: 'Id of a channel, where the file is posted as the caller' });
const message = idReference({ description: 'Id of a message to associate the item with' });

export const createMediaBody = z
  .object({
    name,
    source_url: httpUrl({ description: 'Where to fetch the file: at most 100 MiB' }).nullish(),
    knowledge_graph: knowledgeGraph.nullish(),
    description: description.nullish(),
    channel: channel.nullish(),
    message: message.nullish(),
  })
  .meta({ id: 'MediaCreate', examples: [{ source_url: 'https://www.example.org/plan.pdf', name: 'Plan' }] });

/** Of an upload: the same fields. */
export const uploadQuery = z.object({
  name,
  knowledge_graph: knowledgeGraph.optional(),
  description: description.optional(),
  channel: channel.optional(),
  message: message.optional(),
});

export const mediaParams = z.object({ id: idParam('Id of the media item') });
export const fileParams = z.object({ token: z.string().describe('Names the file; signed') });

const filter = (of: string, deprecated = false) =>
  queryOption(text({ max: 256, description: `Only items ${of}`, ...(deprecated && { deprecated }) }));

const creator = 'that this user or service created';
const inChannel = 'that are associated with this channel';
const organization = 'of this organization: the own one, or none';

export const mediaFilters = {
  twin: filter(creator),
  twin_id: filter(creator, true),
  community: filter(inChannel),
  community_id: filter(inChannel, true),
  organization: filter(organization),
  organization_id: filter(organization, true),
  resource_type: filter('of this kind, such as `image`'),
  format: filter('of this format, such as `png`'),
  knowledge_graph: queryOption(idFilter({ description: 'Only items that are associated with this knowledge graph' })),
};
