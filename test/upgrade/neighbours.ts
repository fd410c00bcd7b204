/** What Parley talks to while its data folder is filled: a model, a website, a server of tools, a webhook. */
import { setTimeout as delay } from 'node:timers/promises';
import { type McpTestServer, saysText, startMcpServer } from '#test/support/mcp-server.ts';
import { type Answer, hangs, type ModelServer, refuses, says, startModelServer } from '#test/support/model-server.ts';
import { html, startWebsite, type Website } from '#test/support/website.ts';

export interface Neighbours {
  readonly model: ModelServer;
  readonly site: Website;
  readonly tools: McpTestServer;
  /** Variables of Parley that name them. */
  readonly settings: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

export async function startNeighbours(): Promise<Neighbours> {
  const [model, site, tools] = await Promise.all([startModelServer(), startWebsite(PAGES), startMcpServer()]);
  model.script(answerOf);
  tools.tools.set('find_order', {
    name: 'find_order',
    description: 'Finds an order',
    inputSchema: { type: 'object', properties: { number: { type: 'string' } } },
    run: ({ number }) => saysText(`Order ${String(number)} is on its way`),
  });
  for (const method of ['/hook', '/gone']) {
    site.pages.set(method, {
      answer: (request, response) => {
        request.resume().on('end', () => response.writeHead(method === '/hook' ? 204 : 410).end());
      },
    });
  }
  return {
    model,
    site,
    tools,
    settings: {
      MODEL_BASE_URL: model.baseUrl,
      MODEL_NAME: 'small',
      MODEL_PRICE_INPUT: '2.5',
      MODEL_PRICE_OUTPUT: '10',
      FETCH_ALLOW_HOSTS: `127.0.0.1:${site.port},127.0.0.1:${tools.port}`,
    },
    async stop() {
      await Promise.all([model.stop(), site.stop(), tools.stop()]);
    },
  };
}

const PAGES = {
  '/': html('Lighthouses', {
    text: 'The lighthouse of Bremerhaven stands in the sea.',
    links: ['/a', '/b', '/missing'],
  }),
  '/a': html('Harbours', { text: 'The harbour of Bremen has twelve docks and one crane.', links: ['/c'] }),
  '/b': html('Ferries', { text: 'The ferry to Helgoland leaves at nine in the morning.' }),
  '/c': html('Tides', { text: 'The tide at Cuxhaven is three metres high.' }),
  '/slow': {
    answer: (_request: unknown, response: { end(text: string): void }) =>
      void delay(120_000).then(() => response.end('')),
  },
  '/file.txt': { headers: { 'content-type': 'text/plain' }, body: 'A plain text that was fetched.' },
};

/** The words in brackets in the last message decide. Messages without an answer between them are one for the model. */
const answerOf: Answer = (response, request) => {
  const { messages, tools = [] } = request.body;
  const last = messages.at(-1);
  const asked = last?.content
    ?.split('\n\n')
    .at(-1)
    ?.match(/\[(\w+)(?: ([\w-]+))?\]/);
  const call = (name: string, input: object): Answer =>
    says({
      reasoning: ['I ', 'look it up.'],
      text: ['One moment. '],
      toolCalls: [{ id: `call-${messages.length}`, name, arguments: JSON.stringify(input) }],
      finish: 'tool_calls',
    });
  const offered = (part: string): string =>
    tools.map((tool) => tool.function.name).find((name) => name.includes(part)) ?? part;
  const answers: Readonly<Record<string, () => Answer>> = {
    search: () => call('search_knowledge_graph', { query: 'lighthouse Bremerhaven' }),
    order: () => call(offered('find_order'), { number: '17' }),
    wrong: () => call('no_such_tool', {}),
    ask: () =>
      call('ask_agent', { agent_id: asked?.[2] ?? '', agent: asked?.[2] ?? '', question: 'How high is the tide?' }),
    mention: () => call('mention_agent', { agent_id: asked?.[2] ?? '', agent: asked?.[2] ?? '' }),
    page: () => call('read_web_page', { url: 'http://127.0.0.1:1/' }),
    fail: () => refuses(400, {}, 'the model refuses this'),
    hang: () => hangs,
    length: () => says({ text: [], finish: 'length' }),
    think: () => says({ reasoning: ['First ', 'this.'], text: ['Then ', 'that.'] }),
  };
  const answer = last?.role === 'tool' ? undefined : answers[asked?.[1] ?? ''];
  if (answer !== undefined) return answer()(response, request);
  // Whether a message concerns an agent is asked without tools, and reports are written from numbered sources.
  const relevance = /yes or no/i.test(JSON.stringify(messages));
  const text = relevance ? ['yes'] : ['The lighthouse ', 'stands in the sea [1].'];
  return says({ text })(response, request);
};
