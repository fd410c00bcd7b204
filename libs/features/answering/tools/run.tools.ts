import { z } from 'zod';

import { admitText } from '#libs/kernel/text.ts';
import type { Agent } from '#libs/features/agents/index.ts';
import { decodeText, ExtractionError } from '#libs/features/documents/index.ts';
import { quotesFor } from '#libs/features/knowledge/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { type Fetched, FetchError } from '#libs/platform/fetch/index.ts';
import type { ModelTool } from '#libs/platform/model/index.ts';

import type { Answering } from '../context.ts';
import type { Run } from '../run/run.ts';

export interface ToolOutcome {
  readonly status: 'success' | 'failure' | 'rate_limited';
  /** As JSON at most `MAX_RESULT_CHARS`: the channel shows it, and the model reads it. */
  readonly result: Record<string, unknown>;
}

/** The question of a tool to another agent; the answer becomes the outcome of the call. */
export interface Asks {
  readonly asks: { readonly runId: EntityId; readonly agentId: EntityId; readonly question: string };
}

interface ToolUse {
  readonly organizationId: EntityId;
  readonly callId: string;
  /** Of commands that the call causes. */
  readonly context: CommandContext;
  readonly agent: Agent;
  readonly signal: AbortSignal;
  /** Equal for every attempt at this call. */
  readonly idempotencyKey: string;
  /** Tells clients how far the call is. */
  readonly update: (text: string) => Promise<void>;
}

/** A tool that an agent may use. */
export interface RunTool extends ModelTool {
  /** Whether a call may be made again that was started and not finished. */
  readonly isRepeatable: boolean;
  /** For users, while the tool runs. */
  displayText(input: Readonly<Record<string, unknown>>): string;
  /** A mistake in the call is an outcome. @throws Fault; the reason of `signal` */
  run(input: Readonly<Record<string, unknown>>, use: ToolUse): Promise<ToolOutcome | Asks>;
}

export const SEARCH_TOOL = 'search_knowledge_graph';
const READ_PAGE_TOOL = 'read_web_page';
export const ASK_TOOL = 'ask_agent';
export const MENTION_TOOL = 'mention_agent';

const MAX_QUERY = 1_000;
const MAX_URL = 2_083;
const MAX_PAGE_CHARS = 20_000;
const PAGE_TIMEOUT_MS = 20_000;
const MAX_PAGE_BYTES = 2 * 1024 * 1024;

const searchInput = z.object({ query: z.string().trim().min(1).max(MAX_QUERY).describe('What to look for, in words') });

export function searchTool({ knowledge }: Pick<Answering, 'knowledge'>): RunTool {
  return {
    name: SEARCH_TOOL,
    description:
      'Searches the knowledge graph of this agent. Returns sentences that answer the query, with their sources.',
    input: searchInput,
    isRepeatable: true,
    displayText: ({ query }) => `Searching the knowledge graph for “${String(query)}”`,
    async run(input, { organizationId, agent, update }) {
      const { query } = searchInput.parse(input);
      const { knowledgeGraph } = agent;
      const found = knowledgeGraph && (await quotesFor(knowledge, organizationId, knowledgeGraph.id, query));
      if (found === null) return failure('the knowledge graph of the agent does not exist any longer');
      await update(found.quotes.length === 1 ? 'Found one passage' : `Found ${found.quotes.length} passages`);
      return { status: 'success', result: { graph: knowledgeGraph?.name, ...found } };
    },
  };
}

const pageInput = z.object({ url: z.string().trim().min(1).max(MAX_URL).describe('An http or https URL') });

/** Reading a page is repeatable: the request is a GET. */
export function readPageTool({ fetcher, extraction }: Pick<Answering, 'fetcher' | 'extraction'>): RunTool {
  return {
    name: READ_PAGE_TOOL,
    description: 'Reads a public web page and returns its title and text.',
    input: pageInput,
    isRepeatable: true,
    displayText: ({ url }) => `Reading ${String(url)}`,
    async run(input, { organizationId, signal, update }) {
      const { url } = pageInput.parse(input);
      try {
        const accept = 'text/html, application/xhtml+xml, text/markdown;q=0.9, text/plain;q=0.8';
        const limits = { maxBytes: MAX_PAGE_BYTES, timeoutMs: PAGE_TIMEOUT_MS };
        const page = await fetcher.fetch(url, { ...limits, accept, signal, group: organizationId });
        if (page.status < 200 || page.status > 299) return failure(`the page answered with the status ${page.status}`);
        await update(`Received ${page.body.length} bytes`);
        return await textOfPage(page, extraction, { organizationId, signal });
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof FetchError) return failure(error.message);
        if (error instanceof ExtractionError && error.reason !== 'closed') return failure('the page cannot be read');
        throw error;
      }
    },
  };
}

async function textOfPage(
  { url, body, contentType }: Fetched,
  extraction: Answering['extraction'],
  options: Pick<ToolUse, 'organizationId' | 'signal'>,
): Promise<ToolOutcome> {
  const type = (contentType ?? 'text/html').split(';', 1)[0]?.trim().toLowerCase();
  const cut = (text: string) => ({
    text: admitText(text, MAX_PAGE_CHARS),
    is_cut: text.length > MAX_PAGE_CHARS,
  });
  switch (type) {
    case 'text/html':
    case 'application/xhtml+xml': {
      const page = await extraction.readPage(body, { url, contentType }, options);
      return { status: 'success', result: { url, title: page.title, ...cut(page.text) } };
    }
    case 'text/plain':
    case 'text/markdown':
    case 'application/json':
      return { status: 'success', result: { url, title: null, ...cut(decodeText(body, contentType).text) } };
    default:
      return failure(`the page is of the type ${admitText(String(type), 100)}, which is not read`);
  }
}

export function failure(reason: string): ToolOutcome {
  return { status: 'failure', result: { error: reason } };
}

interface SourceOfAnswer {
  readonly document_id: string | null;
  readonly name: string;
  readonly url: string | null;
}

const MAX_SOURCES = 20;

const searchResult = z.object({
  quotes: z.array(
    z.object({
      source: z.object({ document_id: z.string(), name: z.string(), url: z.string().nullable() }).nullable(),
    }),
  ),
});
const askResult = z.object({
  sources: z.array(z.object({ document_id: z.string().nullable(), name: z.string(), url: z.string().nullable() })),
});
const pageResult = z.object({ url: z.string(), title: z.string().nullable() });

/** Sources that the tools of a run have found, once each, in the order of their calls. */
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
    return (searchResult.safeParse(result).data?.quotes ?? []).flatMap(({ source }) => source ?? []);
  if (tool === ASK_TOOL) return askResult.safeParse(result).data?.sources ?? [];
  if (tool !== READ_PAGE_TOOL) return [];
  const read = pageResult.safeParse(result).data;
  return read === undefined ? [] : [{ document_id: null, name: read.title ?? read.url, url: read.url }];
}
