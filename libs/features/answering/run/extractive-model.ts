import { z } from 'zod';

import { admitText } from '#libs/kernel/text.ts';
import { type Model, type ModelCall, type ModelPart, NO_USAGE } from '#libs/platform/model/index.ts';

import { SEARCH_TOOL } from '../tools/run.tools.ts';

/** Tokens are those of language models. */
const END = { type: 'finish', model: 'extractive', usage: NO_USAGE, cost: 0, sent: null, omitted: [] } as const;
const MAX_QUERY = 1_000;
const MAX_QUOTE = 1_000;

const searchResult = z.object({
  quotes: z.array(
    z.object({ text: z.string(), source: z.object({ name: z.string(), url: z.string().nullable() }).nullable() }),
  ),
  missing: z.array(z.string()).default([]),
});
type SearchResult = z.infer<typeof searchResult>;

const agentMessage = z.object({ agent: z.string().nullable(), message: z.string() });

/**
 * Answers where no model is configured: it searches the agent's graph for the message and quotes the sentences that it finds,
 * with the sources. It is no language model, and says so.
 */
export const extractiveModel: Model = {
  kind: 'extractive',
  name: 'extractive',
  server: null,
  async *stream(call: ModelCall): AsyncGenerator<ModelPart> {
    const last = call.messages.at(-1);
    const asked = call.messages.findLast((message) => message.role === 'user');
    const query = asked === undefined ? '' : (messageIn(asked.text) ?? asked.text).trim();
    if (last?.role === 'user' && call.tools.some(({ name }) => name === SEARCH_TOOL) && query !== '') {
      yield {
        type: 'reasoning',
        text: 'No language model is configured: searching the knowledge graph for the message.',
      };
      const input = { query: admitText(query, MAX_QUERY) };
      yield { type: 'tool_call', call: { id: 'search', name: SEARCH_TOOL, input } };
      yield { ...END, reason: 'tool_calls' };
      return;
    }
    const result = last?.role === 'tool' ? resultOf(last.result) : null;
    for (const text of piecesOf(query, result)) yield { type: 'text', text };
    yield { ...END, reason: 'stop' };
  },
};

/** The result of a search as the prompt holds it. */
function resultOf(text: string): SearchResult | null {
  return searchResult.safeParse(dataIn(text)).data ?? null;
}

/** A message of another agent as the prompt holds it. */
function messageIn(text: string): string | undefined {
  return agentMessage.safeParse(dataIn(text)).data?.message;
}

/** The JSON between the marks of untrusted data, which may be cut. */
function dataIn(text: string): unknown {
  if (!text.startsWith('<untrusted_data>')) return null;
  try {
    return JSON.parse(text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1));
  } catch {
    return null;
  }
}

/** The answer in pieces: an introduction, one for each quote, the sources. */
function piecesOf(query: string, result: SearchResult | null): string[] {
  if (query === '') return ['The message has no text to search for.'];
  if (result === null) return ['This agent has no knowledge graph that could be searched, and no language model.'];
  const { quotes, missing } = result;
  if (quotes.length === 0) return ['The knowledge graph of this agent holds nothing on this message.'];
  const sources: string[] = [];
  const numberOf = ({ source }: SearchResult['quotes'][number]): number => {
    const text = source === null ? 'A statement in the knowledge graph' : sourceText(source);
    if (!sources.includes(text)) sources.push(text);
    return sources.indexOf(text) + 1;
  };
  const lines = quotes.map((quote) => `- ${admitText(quote.text, MAX_QUOTE)} [${numberOf(quote)}]\n`);
  return [
    'Quoted from the knowledge graph; no language model wrote this.\n\n',
    ...lines,
    ...(missing.length === 0 ? [] : [`\nNothing was found for: ${missing.join(', ')}.\n`]),
    `\nSources:\n\n${sources.map((source, index) => `${index + 1}. ${source}`).join('\n')}`,
  ];
}

function sourceText({ name, url }: { readonly name: string; readonly url: string | null }): string {
  return url === null ? name : `${name}, ${url}`;
}
