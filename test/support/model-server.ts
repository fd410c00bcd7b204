/** A server on loopback that speaks the chat completions of the OpenAI API, and misbehaves on request. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export interface ModelRequest {
  readonly headers: IncomingHttpHeaders;
  readonly body: ChatRequest;
}

export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly {
    readonly role: string;
    readonly content: string | null;
    readonly tool_calls?: readonly {
      readonly id: string;
      readonly function: { readonly name: string; readonly arguments: string };
    }[];
    readonly tool_call_id?: string;
  }[];
  readonly tools?: readonly { readonly function: { readonly name: string; readonly parameters: unknown } }[];
  readonly [member: string]: unknown;
}

/** Answers one request. */
export type Answer = (response: ServerResponse, request: ModelRequest) => void | Promise<void>;

export interface ModelServer {
  /** `http://127.0.0.1:4000/v1` */
  readonly baseUrl: string;
  /** In order of arrival. */
  readonly requests: ModelRequest[];
  /** Connections that are open now. */
  readonly open: number;
  /** Answers for the next requests; the last one also answers all that follow. */
  script(...answers: readonly Answer[]): void;
  stop(): Promise<void>;
}

export async function startModelServer(): Promise<ModelServer> {
  const requests: ModelRequest[] = [];
  let script: readonly Answer[] = [];
  let open = 0;
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      if (incoming.method !== 'POST' || incoming.url?.split('?')[0] !== '/v1/chat/completions') {
        response.writeHead(404).end();
        return;
      }
      const request = { headers: incoming.headers, body: JSON.parse(Buffer.concat(chunks).toString()) as ChatRequest };
      requests.push(request);
      const [answer, ...others] = script;
      if (others.length > 0) script = others;
      if (answer === undefined) response.writeHead(500).end('no answer is scripted');
      else void answer(response, request);
    });
  });
  server.on('connection', (socket) => {
    open += 1;
    socket.on('close', () => (open -= 1));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    get open() {
      return open;
    },
    script: (...answers) => {
      script = answers;
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export interface ToolCallOfModel {
  readonly id: string;
  readonly name: string;
  /** JSON, or what a model writes instead. */
  readonly arguments: string;
}

/** What a model says in one answer. */
export interface Said {
  readonly reasoning?: readonly string[];
  readonly text?: readonly string[];
  readonly toolCalls?: readonly ToolCallOfModel[];
  readonly finish?: string;
  /** Between two chunks. Default: none. */
  readonly pauseMs?: number;
}

const USAGE = {
  prompt_tokens: 12,
  completion_tokens: 5,
  total_tokens: 17,
  prompt_tokens_details: { cached_tokens: 4 },
  completion_tokens_details: { reasoning_tokens: 2 },
};

/** One event for each word of reasoning and text; the arguments of a call in two halves. */
export function deltasOf({ reasoning = [], text = [], toolCalls = [] }: Said): object[] {
  return [
    ...reasoning.map((part) => ({ reasoning_content: part })),
    ...text.map((part) => ({ content: part })),
    ...toolCalls.flatMap(({ id, name, arguments: all }, index) => {
      const half = Math.ceil(all.length / 2);
      return [
        { tool_calls: [{ index, id, type: 'function', function: { name, arguments: all.slice(0, half) } }] },
        { tool_calls: [{ index, function: { arguments: all.slice(half) } }] },
      ];
    }),
  ];
}

/** A whole, valid answer. */
export function says(said: Said): Answer {
  return async (response, { body }) => {
    begin(response);
    for (const delta of deltasOf(said)) {
      if (response.destroyed) return;
      response.write(chunk(body.model, delta));
      if (said.pauseMs !== undefined) await delay(said.pauseMs);
    }
    end(response, body.model, said);
  };
}

/** The beginning of an answer, and its rest once `released` resolves. */
export function saysInParts(first: Said, released: () => Promise<void>, rest: Said): Answer {
  return async (response, { body }) => {
    begin(response);
    for (const delta of deltasOf(first)) response.write(chunk(body.model, delta));
    await released();
    if (response.destroyed) return;
    for (const delta of deltasOf(rest)) response.write(chunk(body.model, delta));
    end(response, body.model, rest);
  };
}

/** Some of an answer; then `next` does what it likes with the response. */
export function saysThen(said: Said, next: (response: ServerResponse) => void): Answer {
  return (response, { body }) => {
    begin(response);
    for (const delta of deltasOf(said)) response.write(chunk(body.model, delta));
    next(response);
  };
}

export function refuses(status: number, headers: Record<string, string> = {}, message = 'refused by the test'): Answer {
  return (response) => {
    const body = JSON.stringify({ error: { message, type: 'test', code: null, param: null } });
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
  };
}

/** A stream of events with the given text, as it is. `after`: default, ends the response. */
export function streams(
  text: string,
  after: (response: ServerResponse) => void = (response) => response.end(),
): Answer {
  return (response) => {
    begin(response);
    response.write(text, () => after(response));
  };
}

/** Chunks of an answer, as an endpoint writes them: each object in an event of its own. */
export function chunks(...objects: readonly object[]): string {
  return objects.map(event).join('');
}

/** A chunk with one choice. */
export function delta(members: object | null, finish: string | null = null): object {
  return { id: 'answer', model: 'small-2026', choices: [{ index: 0, delta: members, finish_reason: finish }] };
}

export const DONE = 'data: [DONE]\n\n';

/** Accepts the request and never answers. */
export const hangs: Answer = () => undefined;

/** A text of `bytes` in chunks of 64 KiB. */
export function saysTooMuch(bytes: number): Answer {
  return async (response, { body }) => {
    begin(response);
    const part = chunk(body.model, { content: 'x'.repeat(64 * 1024) });
    for (let sent = 0; sent < bytes && !response.destroyed; sent += part.length) {
      if (!response.write(part)) await drained(response);
    }
    response.end();
  };
}

/** Also resolves when the client is gone. */
async function drained(response: ServerResponse): Promise<void> {
  const over = new AbortController();
  const { signal } = over;
  await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal })]);
  over.abort();
}

function end(response: ServerResponse, model: string, { toolCalls, finish }: Said): void {
  response.write(chunk(model, {}, finish ?? (toolCalls === undefined ? 'stop' : 'tool_calls')));
  response.write(event({ id: 'answer', model, choices: [], usage: USAGE }));
  response.end('data: [DONE]\n\n');
}

function begin(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
}

function chunk(model: string, delta: object, finish: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  return event({ id: 'answer', object: 'chat.completion.chunk', created: 1_700_000_000, model, choices });
}

function event(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}
