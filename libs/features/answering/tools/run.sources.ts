import { z } from 'zod';

import { ASK_TOOL, READ_PAGE_TOOL, SEARCH_TOOL } from './run.tools.ts';
import type { Run } from '../run/run.ts';

export interface SourceOfAnswer {
  readonly document_id: string | null;
  readonly name: string;
  readonly url: string | null;
}

const MAX_SOURCES = 20;

const searched = z.object({
  quotes: z.array(
    z.object({
      source: z.object({ document_id: z.string(), name: z.string(), url: z.string().nullable() }).nullable(),
    }),
  ),
});
const answer = z.object({
  sources: z.array(z.object({ document_id: z.string().nullable(), name: z.string(), url: z.string().nullable() })),
});
const page = z.object({ url: z.string(), title: z.string().nullable() });

/** What the tools of a run have found, once each, in the order of their calls. */
export function sourcesOf({ steps }: Pick<Run, 'steps'>): SourceOfAnswer[] {
  const sources = new Map<string, SourceOfAnswer>();
  for (const one of steps) {
    if (one.kind !== 'tool' || one.status !== 'success') continue;
    for (const source of sourcesOfResult(one.name, one.result)) {
      sources.set(`${source.document_id} ${source.url} ${source.name}`, source);
    }
  }
  return [...sources.values()].slice(0, MAX_SOURCES);
}

function sourcesOfResult(tool: string, result: unknown): SourceOfAnswer[] {
  if (tool === SEARCH_TOOL)
    return (searched.safeParse(result).data?.quotes ?? []).flatMap(({ source }) => source ?? []);
  if (tool === ASK_TOOL) return answer.safeParse(result).data?.sources ?? [];
  if (tool !== READ_PAGE_TOOL) return [];
  const read = page.safeParse(result).data;
  return read === undefined ? [] : [{ document_id: null, name: read.title ?? read.url, url: read.url }];
}
