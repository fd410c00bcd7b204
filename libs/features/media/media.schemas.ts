import { z } from 'zod';

import { httpUrl, idFilter, idParam, idReference, queryOption, text, shownTime } from '#libs/platform/http/index.ts';

export const mediaSchema = z
  .object({
    id: z.string(),
    created: shownTime(),
    modified: shownTime(),
    name: z.string().nullable(),
    url: z
      .string()
      .nullable()
      .describe('Address of the preview: an image, or the start of a text; null without one. It expires'),
    source_url: z.string().nullable().describe('The URL that the item was created with'),
    file_url: z.string().nullable().describe('Address of the stored file; null without one. It expires'),
    description: z.string().nullable(),
    status: z.string().nullable().describe('`Queued`, `Processing`, `Ready`, or `Failed: <why>`'),
    format: z.string().default('').describe('Usual extension of such files; empty until it is known'),
    resource_type: z
      .string()
      .default('')
      .describe('`image`, `video`, `audio`, `document`, `text`, `archive` or `other`; empty until it is known'),
    mime_type: z.string().describe('Found out from the content; empty until it is known'),
    bytes: z.int().describe('Size of the stored file; 0 without one'),
    width: z
      .int()
      .default(0)
      .describe('As it is shown: of an image or a video in pixels, of a PDF in points; 0 if not measured'),
    height: z.int().default(0),
    pages: z.int().nullable().describe('Of a PDF'),
    duration_ms: z.int().nullable().describe('Of audio and video'),
    document_id: z.string().nullable().describe('The document that the knowledge graph learns from'),
    interaction_id: z.string().nullable().describe('The interaction that shows the file in the channel'),
    channel: z.string().nullable().describe('The channel that the item was created for'),
    message: z.string().nullable().describe('The message that the item was created for'),
    sha256: z.string().nullable().describe('Of the stored file, in hex; null without one'),
  })
  .meta({ id: 'Media' });

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
  .meta({ id: 'MediaCreate' });

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
