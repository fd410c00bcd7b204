/** Forms of answers that users of other clients report, each with its report. */
import type { ServerResponse } from 'node:http';

import {
  beginEvents,
  chunk,
  data,
  DONE,
  ending,
  type Family,
  type Scripted,
  sendEvents,
  sendJson,
  USAGE,
} from './endpoint.ts';

/** An endpoint that accepts every request; its answers are written by hand. */
export const any: Family = {
  name: 'any',
  rules: [],
  refusal: () => ({ status: 400, body: {} }),
  answer: () => ({ events: [], message: { role: 'assistant' } }),
};

export interface Form {
  readonly what: string;
  /** `repository#number`, or the document. */
  readonly source: string;
  readonly sends: readonly Scripted[];
  /** The text of the answer; with `failed: ` before the reason of a run that fails, and the text that it keeps. */
  readonly comesTo: string;
  /** Calls of tools that the run makes. Default: none. */
  readonly calls?: number;
  /** What the next request has to repeat. */
  readonly repeats?: string;
}

export const ANSWER = 'It opens at nine.';
/** Signatures have several thousand characters. */
const LONG = 'Ab3+/'.repeat(800);

const say = (delta: object, choice: object = {}): string => chunk('any', delta, choice);
const text = (content: string): string => say({ content });
const END = ending('any', 'stop');
const events =
  (...sent: readonly string[]): Scripted =>
  (response) =>
    sendEvents(response, sent);
const raw =
  (status: number, type: string, body: string, headers: Record<string, string> = {}): Scripted =>
  (response) => {
    response.writeHead(status, { 'content-type': type, ...headers }).end(body);
  };
const body =
  (value: unknown, status = 200): Scripted =>
  (response) =>
    sendJson(response, status, value);

const good = events(text(ANSWER), ...END);
const search = { name: 'search_knowledge_graph', arguments: '{"query":"warehouse Bremen open"}' };
/** A step that ends after calls, in chunks with these `tool_calls`. */
const calls = (...chunks: readonly object[][]): Scripted =>
  events(...chunks.map((tool_calls) => say({ tool_calls })), ...ending('any', 'tool_calls'));
const error = (code: number | string, message = 'try again'): string => data({ error: { code, message } });

export const FORMS: readonly Form[] = [
  {
    what: 'an empty reason before the end',
    source: 'adolfousier/opencrabs#1499',
    sends: [events(say({ content: 'It opens ' }, { finish_reason: '' }), text('at nine.'), ...END)],
    comesTo: ANSWER,
  },
  {
    what: 'a reason in each chunk',
    source: 'su-kaka/gcli2api#403',
    sends: [
      events(
        say({ reasoning_content: 'Hm.' }, { finish_reason: 'stop' }),
        say({ content: ANSWER }, { finish_reason: 'stop' }),
        ...END,
      ),
    ],
    comesTo: ANSWER,
  },
  {
    what: 'no reason before [DONE]',
    source: 'diegosouzapw/OmniRoute#7800',
    sends: [events(text(ANSWER), DONE)],
    comesTo: ANSWER,
  },
  {
    what: 'a connection that stays open after the reason and [DONE]',
    source: 'Server-sent events: the end is in the content',
    sends: [sendsAndStays(text(ANSWER), ...END)],
    comesTo: ANSWER,
  },
  {
    what: 'a role and a content that are null',
    source: 'sgl-project/sglang#18335',
    sends: [events(say({ role: null, content: null, tool_calls: null }), text(ANSWER), ...END)],
    comesTo: ANSWER,
  },
  {
    what: 'choices that are null, a choice without a delta, and a delta that is null',
    source: 'microsoft/autogen#6465, AbanteAI/archive-old-cli-mentat#429',
    sends: [
      events(
        data({ choices: null }),
        data({ choices: [{ index: 0, finish_reason: null }] }),
        data({ choices: [{ index: 0, delta: null }] }),
        text(ANSWER),
        ...END,
      ),
    ],
    comesTo: ANSWER,
  },
  {
    what: 'choices that are numbered by token',
    source: 'huggingface/text-generation-inference#1648',
    sends: [events(say({ content: 'It opens ' }, { index: 1 }), say({ content: 'at nine.' }, { index: 2 }), ...END)],
    comesTo: ANSWER,
  },
  {
    what: 'a role that is empty, and a reason without a delta',
    source: 'anomalyco/opencode#28427, osaurus-ai/osaurus#2150',
    sends: [
      events(
        say({ role: '', content: ANSWER }),
        data({ choices: [{ index: 0, finish_reason: 'stop' }] }),
        data({ usage: USAGE }),
        DONE,
      ),
    ],
    comesTo: ANSWER,
  },
  {
    what: 'events with an id and a time for reconnecting',
    source: 'aaif-goose/goose#11297',
    sends: [events(`retry:3000\n\nid:1\nevent:message\n${text(ANSWER)}`, ...END.map((one) => `id:2\n${one}`))],
    comesTo: ANSWER,
  },
  {
    what: 'events of another type between the chunks',
    source: 'NousResearch/hermes-agent#7989',
    sends: [
      events(
        'event: hermes.tool.progress\ndata: {"tool":"search","label":"Searching"}\n\n',
        text(ANSWER),
        'event: ping\ndata: {}\n\n',
        ...END,
      ),
    ],
    comesTo: ANSWER,
  },
  {
    what: 'lines that end with CR LF, a byte order mark, and data without a space',
    source: 'HTML standard, "Server-sent events"',
    sends: [events(`\uFEFF${[text(ANSWER), ...END].join('').replaceAll('data: ', 'data:').replaceAll('\n', '\r\n')}`)],
    comesTo: ANSWER,
  },
  {
    what: 'characters that are split between packets',
    source: 'HTML standard, "Server-sent events"',
    sends: [inPackets(Buffer.from([text('Öffnet um neun. 🕘'), ...END].join('')), 1)],
    comesTo: 'Öffnet um neun. 🕘',
  },
  {
    what: 'a JSON document in place of the stream',
    source: 'sgl-project/sglang#2810',
    sends: [
      body(completion({ content: null, tool_calls: [{ id: 'a', type: 'function', function: search }] }, 'tool_calls')),
      body(completion({ content: ANSWER }, 'stop')),
    ],
    comesTo: ANSWER,
    calls: 1,
  },
  {
    what: 'a text in parts',
    source: 'BerriAI/litellm#16272',
    sends: [events(say({ content: [{ type: 'text', text: ANSWER }] }), ...END)],
    comesTo: ANSWER,
  },
  {
    what: 'the name of a call after its id',
    source: 'anomalyco/opencode#24137',
    sends: [
      calls(
        [{ index: 0, id: 'a', type: 'function', function: { arguments: '' } }],
        [{ index: 0, function: { name: search.name } }],
        [{ index: 0, function: { arguments: search.arguments } }],
      ),
      good,
    ],
    comesTo: ANSWER,
    calls: 1,
  },
  {
    what: 'calls that continue with empty ids and names',
    source: 'lmstudio-ai/lmstudio-bug-tracker#649',
    sends: [
      calls(
        [{ index: 0, id: 'a', type: 'function', function: { name: search.name, arguments: '' } }],
        [{ index: 0, id: '', type: 'function', function: { name: '', arguments: search.arguments } }],
      ),
      good,
    ],
    comesTo: ANSWER,
    calls: 1,
  },
  {
    what: 'a call that begins with arguments of null',
    source: 'aaif-goose/goose#6796',
    sends: [
      calls(
        [{ index: 0, id: '', type: 'function', function: { arguments: null } }],
        [{ index: 0, id: 'a', type: 'function', function: search }],
      ),
      good,
    ],
    comesTo: ANSWER,
    calls: 1,
  },
  {
    what: 'a call that has another id with each piece',
    source: 'BerriAI/litellm#40040',
    sends: [
      calls(
        [{ index: 0, id: 'a', type: 'function', function: { name: search.name, arguments: '' } }],
        [{ index: 0, id: 'b', type: 'function', function: { name: '', arguments: search.arguments.slice(0, 9) } }],
        [{ index: 0, id: 'c', type: 'function', function: { name: '', arguments: search.arguments.slice(9) } }],
      ),
      good,
    ],
    comesTo: ANSWER,
    calls: 1,
  },
  {
    what: 'calls without a reason before [DONE]',
    source: 'openclaw/openclaw#97994',
    sends: [events(say({ tool_calls: [{ index: 0, id: 'a', function: search }] }), DONE), good],
    comesTo: ANSWER,
    calls: 1,
  },
  {
    what: 'whole calls before a stream that ends without a reason and [DONE]',
    source: 'earendil-works/pi#6225, 9j/claude-code-mux#11',
    sends: [events(say({ tool_calls: [{ index: 0, id: 'a', function: search }] })), good],
    comesTo: ANSWER,
    calls: 1,
  },
  {
    what: 'calls without an index and an id',
    source: 'microsoft/autogen#4878',
    sends: [calls([{ id: '', type: 'function', function: search }]), good],
    comesTo: ANSWER,
    calls: 1,
  },
  {
    what: 'an empty text before calls',
    source: 'sgl-project/sglang#29441',
    sends: [
      events(
        say({ role: 'assistant' }),
        text(''),
        say({ content: '', tool_calls: [{ index: 0, id: 'a', function: search }] }),
        ...ending('any', 'tool_calls'),
      ),
      good,
    ],
    comesTo: ANSWER,
    calls: 1,
  },
  {
    what: 'arguments that are an object',
    source: 'ggml-org/llama.cpp#20198',
    sends: [
      calls([{ index: 0, id: 'a', function: { ...search, arguments: { query: 'warehouse Bremen open' } } }]),
      good,
    ],
    comesTo: ANSWER,
    calls: 1,
  },
  {
    what: 'parallel calls with one index',
    source: 'NousResearch/hermes-agent#101654',
    sends: [calls([{ index: 0, id: 'a', function: search }], [{ index: 0, id: 'b', function: { ...search } }]), good],
    comesTo: ANSWER,
    calls: 2,
  },
  {
    what: 'parallel calls of one chunk without indexes',
    source: 'noho/dayu-agent#82',
    sends: [
      calls([
        { id: 'a', function: search },
        { id: 'b', function: search },
      ]),
      good,
    ],
    comesTo: ANSWER,
    calls: 2,
  },
  {
    what: 'an id that is as long as a signature',
    source: 'BerriAI/litellm: encode_tool_call_id_with_signature',
    sends: [calls([{ index: 0, id: `call_1__thought__${LONG}`, function: search }]), good],
    comesTo: ANSWER,
    calls: 1,
    repeats: `call_1__thought__${LONG}`,
  },
  {
    what: 'a signature of a call, in a member of its own',
    source: 'Gemini documentation, "Thought signatures"',
    sends: [
      calls([{ index: 0, id: 'a', function: search, extra_content: { google: { thought_signature: LONG } } }]),
      good,
    ],
    comesTo: ANSWER,
    calls: 1,
    repeats: `"extra_content":{"google":{"thought_signature":"${LONG}"}}`,
  },
  {
    what: 'the arguments of two calls in one',
    source: 'dyedd/lens#49',
    sends: [
      calls(
        [{ index: 0, id: 'a', function: { name: search.name, arguments: search.arguments } }],
        [{ index: 0, function: { name: '', arguments: '{"query":"helmets"}' } }],
      ),
      good,
    ],
    comesTo: ANSWER,
    calls: 1,
  },
  {
    what: 'the reason tool_calls without a call',
    source: 'ddalcu/mlx-serve#287',
    sends: [events(text(ANSWER), ...ending('any', 'tool_calls'))],
    comesTo: ANSWER,
  },
  {
    what: 'a rate limit as the first event of a 200',
    source: 'diegosouzapw/OmniRoute#8210',
    sends: [events(error(429)), good],
    comesTo: ANSWER,
  },
  {
    what: 'an error whose status is a string, as the first event',
    source: 'camel-ai/owl#532',
    sends: [events(error('503')), good],
    comesTo: ANSWER,
  },
  {
    what: 'an error as a text, in an event of the type error',
    source: 'octos-org/octos#13',
    sends: [events('event: error\ndata: {"error":"Stream error: connection reset"}\n\n'), good],
    comesTo: ANSWER,
  },
  {
    what: 'a rate limit as the JSON document of a 200',
    source: 'apache/rocketmq-dashboard#2178',
    sends: [body({ error: { code: 429, message: 'quota exceeded' } }), good],
    comesTo: ANSWER,
  },
  {
    what: 'an error that is the whole event',
    source: 'aaif-goose/goose#8021',
    sends: [events(data({ object: 'error', message: 'Internal server error', code: 500 }), DONE), good],
    comesTo: ANSWER,
  },
  {
    what: 'a failure of the provider in the middle',
    source: 'OpenRouter documentation, "Streaming"',
    sends: [
      events(
        text('It opens'),
        data({
          error: { code: 502, message: 'Provider disconnected' },
          choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }],
        }),
      ),
    ],
    comesTo: 'failed: model_unavailable: It opens',
  },
  {
    what: 'a rate limit in the middle',
    source: 'OpenRouter documentation, "Streaming"',
    sends: [events(text('It opens'), error(429), DONE)],
    comesTo: 'failed: model_rate_limited: It opens',
  },
  {
    what: 'a server that still loads its model',
    source: 'llama.cpp documentation, "server": 503 Loading model',
    sends: [body({ error: { code: 503, message: 'Loading model', type: 'unavailable_error' } }, 503), good],
    comesTo: ANSWER,
  },
  {
    what: 'a page of a proxy with the status 502',
    source: 'BerriAI/litellm#12679',
    sends: [raw(502, 'text/html', '<html><h1>502 Bad Gateway</h1></html>'), good],
    comesTo: ANSWER,
  },
  {
    what: 'a Retry-After that cannot be read',
    source: 'RFC 9110, 10.2.3',
    sends: [raw(429, 'application/json', '{"error":{"message":"slow down"}}', { 'retry-after': 'soon' }), good],
    comesTo: ANSWER,
  },
  {
    what: 'a login page with the status 200',
    source: 'a proxy that wants a login',
    sends: [raw(200, 'text/html', '<html><h1>Log in</h1></html>')],
    comesTo: 'failed: model_bad_response',
  },
  {
    what: 'thoughts between tags, split anywhere',
    source: 'antoinezambelli/forge#113',
    sends: [events(...'<think>\nIs it eight?\n</think>\n\nIt opens at nine.'.split('').map(text), ...END)],
    comesTo: ANSWER,
  },
  {
    what: 'a text that speaks of the tags',
    source: 'ggml-org/llama.cpp#23320',
    sends: [events(text('Use `<thi'), text('nk>` for thoughts.'), ...END)],
    comesTo: 'Use `<think>` for thoughts.',
  },
  {
    what: 'an answer that was cut at the limit',
    source: 'Gitlawb/openclaude#1174',
    sends: [events(text('It opens'), ...ending('any', 'length'))],
    comesTo: 'It opens',
  },
  {
    what: 'the refusal of a model, in a member of its own',
    source: 'OpenAI documentation, "Structured outputs": refusals',
    sends: [events(say({ refusal: 'I cannot help with that.' }), ...END)],
    comesTo: 'I cannot help with that.',
  },
  {
    what: 'an answer without a text',
    source: 'su-kaka/gcli2api#406',
    sends: [events(say({ role: 'assistant', content: '' }), ...END)],
    comesTo: 'failed: model_no_answer',
  },
  {
    what: 'an answer of blanks',
    source: 'NousResearch/hermes-agent#11929',
    sends: [events(text(' \n'), text('\n'), ...END)],
    comesTo: 'failed: model_no_answer',
  },
  {
    what: 'a filter that left nothing',
    source: 'Azure documentation, "Content filtering"',
    sends: [events(say({}), ...ending('any', 'content_filter'))],
    comesTo: 'failed: model_content_filter',
  },
  {
    what: 'a reason of the provider, without a text',
    source: 'DeepSeek documentation, "Create chat completion": insufficient_system_resource',
    sends: [events(say({ content: '' }), ...ending('any', 'insufficient_system_resource'))],
    comesTo: 'failed: model_unavailable',
  },
];

function completion(message: object, finish: string): object {
  const choices = [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: finish }];
  return { id: 'a', object: 'chat.completion', model: 'any', choices, usage: USAGE };
}

function sendsAndStays(...sent: readonly string[]): Scripted {
  return (response: ServerResponse) => {
    beginEvents(response);
    response.write(sent.join(''));
  };
}

function inPackets(bytes: Buffer, size: number): Scripted {
  return async (response: ServerResponse) => {
    beginEvents(response);
    response.socket?.setNoDelay();
    for (let at = 0; at < bytes.length; at += size) {
      await new Promise((resolve) => response.write(bytes.subarray(at, at + size), resolve));
    }
    response.end();
  };
}
