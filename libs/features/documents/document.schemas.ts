import { z } from 'zod';

import { idFilter, idParam, idReference, jsonMap, text } from '#libs/platform/http/index.ts';

export const CONTENT_TYPES = [
  'text/plain',
  'text/markdown',
  'text/html',
  'application/json',
  'application/pdf',
] as const;
export type ContentType = (typeof CONTENT_TYPES)[number];

const EXTENSIONS: Readonly<Record<string, string>> = {
  'text/markdown': 'md',
  'text/html': 'html',
  'application/json': 'json',
  'application/pdf': 'pdf',
} satisfies Partial<Record<ContentType, string>>;

/** Of the name of a file. @param contentType perhaps with a charset */
export function extensionOf(contentType: string): string {
  return EXTENSIONS[contentType.split(';')[0] ?? ''] ?? 'txt';
}

const name = text({ max: 256, description: 'Name of the document; default: the title of the content' });
const knowledgeGraph = idReference({ description: 'Id of the knowledge graph that learns from the document' });
const externalId = text({
  min: 1,
  max: 256,
  description: 'Id at its source: a document of the graph with the same one is changed',
});

const DATA_LIMITS = { depth: 32, nodes: 10_000, bytes: 64 * 1024 };

export const createDocumentBody = z
  .object({
    knowledge_graph: knowledgeGraph,
    name: name.default(''),
    external_id: externalId.nullish(),
    content_type: z.enum(CONTENT_TYPES).nullish().describe('Default: `text/plain`, or `application/json` for `data`'),
    text: text({ min: 1, description: 'The content: at most 5 MiB in UTF-8' }).nullish(),
    data: jsonMap({ description: 'The content, as a JSON object of at most 64 KiB' }, DATA_LIMITS).nullish(),
    media: idReference({
      description: 'The content is the file of this media item: text, HTML, JSON or a PDF of at most 5 MiB',
    }).nullish(),
  })
  .meta({
    id: 'DocumentCreate',
    examples: [
      { knowledge_graph: '01a1ff85-0000-7000-8000-000000000000', name: 'Opening hours', text: 'We open at nine.' },
    ],
  });

/** The bytes of a file. */
export const uploadBody = z
  .unknown()
  .meta({ type: 'string', format: 'binary', description: 'The file: at most 5 MiB of one of the content types' });

export const uploadQuery = z.object({
  knowledge_graph: knowledgeGraph,
  name: name.default(''),
  external_id: externalId.optional(),
});

export const documentParams = z.object({ id: idParam('Id of the document') });

export const documentFilters = {
  knowledge_graph: idFilter({ description: 'Only documents of this knowledge graph' }).optional(),
  status: text({ description: 'Only documents of this status: `Failed` matches every reason' }).optional(),
  crawl: idFilter({ description: 'Only documents of this crawl' }).optional(),
};
