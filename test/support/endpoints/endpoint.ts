/**
 * Strict fakes of the families of endpoints that speak the chat completions of the OpenAI API, on loopback. A family
 * checks each request by its documented rules, refuses it with its own error, and writes its answers in its own dialect.
 * The name of the model, `family/anything`, chooses the family.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

export interface Message {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly Call[];
  readonly tool_call_id?: string;
  readonly [member: string]: unknown;
}

export interface Call {
  readonly id: string;
  readonly type?: string;
  readonly function: { readonly name: string; readonly arguments: string };
  readonly [member: string]: unknown;
}

export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly Message[];
  readonly tools?: readonly { readonly function: { readonly name: string; readonly parameters?: unknown } }[];
  readonly tool_choice?: unknown;
  readonly [member: string]: unknown;
}

/** What the model says in one answer. */
export interface Said {
  readonly reasoning?: readonly string[];
  readonly text?: readonly string[];
  /** `arguments`: JSON, or what a model writes instead. */
  readonly calls?: readonly { readonly name: string; readonly arguments: string }[];
  readonly finish?: string;
}

/** Of one model. */
export interface Conversation {
  readonly model: string;
  /** Messages that the endpoint wants to get back, unchanged. */
  readonly given: readonly Message[];
}

export interface Rule {
  readonly says: string;
  /** The document, or `repository#number` of the public report. */
  readonly source: string;
  /** Of a parameter that the refusal names: a client may repeat the request without it. */
  readonly parameter?: string;
  /** @returns what the endpoint says of a request that breaks the rule, else null */
  broken(request: ChatRequest, conversation: Conversation): string | null;
}

export interface Refusal {
  readonly status: number;
  readonly body: unknown;
}

export interface Family {
  readonly name: string;
  readonly rules: readonly Rule[];
  refusal(message: string, rule: Rule, request: ChatRequest): Refusal;
  /** Tokens that its thoughts take of the limit of an answer, before the first word. */
  readonly thoughtTokens?: number;
  /** The server-sent events of an answer, and the message that they amount to. */
  answer(said: Said, conversation: Conversation): Answered;
}

export interface Answered {
  readonly events: readonly string[];
  readonly message: Message;
}

/** One answer of a script: what the model says, or what happens in its place. */
export type Scripted = Said | ((response: ServerResponse, request: ChatRequest) => void | Promise<void>);

export interface Refused {
  readonly rule: Rule;
  readonly message: string;
}

interface Model {
  script: readonly Scripted[];
  readonly given: Message[];
  readonly requests: ChatRequest[];
  readonly refused: Refused[];
}

export interface Endpoints {
  /** `http://127.0.0.1:4000/v1` */
  readonly baseUrl: string;
  /** Answers for the next requests that are accepted; the last one also answers all that follow. */
  script(model: string, ...answers: readonly Scripted[]): void;
  requests(model: string): readonly ChatRequest[];
  refused(model: string): readonly Refused[];
  stop(): Promise<void>;
}

export async function startEndpoints(families: readonly Family[]): Promise<Endpoints> {
  const models = new Map<string, Model>();
  const modelOf = (name: string): Model => {
    const model = models.get(name) ?? { script: [], given: [], requests: [], refused: [] };
    models.set(name, model);
    return model;
  };
  const server = createServer((incoming, response) => {
    void json(incoming).then(async (body) => {
      const request = body as ChatRequest;
      const family = families.find(({ name }) => name === request.model.split('/')[0]);
      if (family === undefined) response.writeHead(404).end();
      else await answer(response, request, family, modelOf(request.model));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    script: (name, ...answers) => {
      modelOf(name).script = answers;
    },
    requests: (name) => modelOf(name).requests,
    refused: (name) => modelOf(name).refused,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(response: ServerResponse, request: ChatRequest, family: Family, model: Model): Promise<void> {
  model.requests.push(request);
  const conversation = { model: request.model, given: model.given };
  for (const rule of family.rules) {
    const message = rule.broken(request, conversation);
    if (message === null) continue;
    model.refused.push({ rule, message });
    const { status, body } = family.refusal(message, rule, request);
    sendJson(response, status, body);
    return;
  }
  const [next, ...others] = model.script;
  if (others.length > 0) model.script = others;
  if (next === undefined) sendJson(response, 500, { error: { message: 'no answer is scripted' } });
  else if (typeof next === 'function') await next(response, request);
  else {
    const { events, message } = family.answer(hasRoom(family, request) ? next : { finish: 'length' }, conversation);
    model.given.push(message);
    sendEvents(response, events);
  }
}

function hasRoom({ thoughtTokens = 0 }: Family, request: ChatRequest): boolean {
  const limit = request['max_completion_tokens'] ?? request['max_tokens'];
  return typeof limit !== 'number' || limit > thoughtTokens;
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** Sends events, each in a packet of its own, and ends the response. */
export function sendEvents(response: ServerResponse, events: readonly string[]): void {
  beginEvents(response);
  for (const one of events) response.write(one);
  response.end();
}

export function beginEvents(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
}

export const data = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
export const DONE = 'data: [DONE]\n\n';
export const USAGE = { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 };

/** One chunk with one choice. */
export function chunk(model: string, delta: object, choice: object = {}): string {
  const choices = [{ index: 0, delta, finish_reason: null, ...choice }];
  return data({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_700_000_000, model, choices });
}

/** The chunk with the reason, that with the usage, and the end. */
export function ending(model: string, reason: string, choice: object = {}): string[] {
  const usage = { id: 'chatcmpl-1', object: 'chat.completion.chunk', model, choices: [], usage: USAGE };
  return [chunk(model, {}, { finish_reason: reason, ...choice }), data(usage), DONE];
}

export const reasonOf = ({ finish, calls = [] }: Said): string => finish ?? (calls.length > 0 ? 'tool_calls' : 'stop');

/** The deltas of a call: its head, and its arguments in halves. `more`: members of the family. */
export function callDeltas(calls: readonly Call[], continued: object = {}): object[] {
  return calls.flatMap(({ function: { name, arguments: all }, ...call }, index) => {
    const half = Math.ceil(all.length / 2);
    const rest = [all.slice(0, half), all.slice(half)];
    return [
      { tool_calls: [{ index, ...call, function: { name, arguments: '' } }] },
      ...rest.map((part) => ({ tool_calls: [{ index, ...continued, function: { ...continued, arguments: part } }] })),
    ];
  });
}

/** The message of an answer, with what a family adds to it. */
export function messageOf(said: Said, calls: readonly Call[], more: object = {}): Message {
  const text = said.text?.join('') ?? '';
  return {
    role: 'assistant',
    content: text === '' ? null : text,
    ...(calls.length > 0 && { tool_calls: calls }),
    ...more,
  };
}

/** The calls of an answer, with ids by their number in the conversation. */
export function callsOf(said: Said, { given }: Conversation, idOf: (name: string, n: number) => string): Call[] {
  const before = given.reduce((sum, { tool_calls: calls = [] }) => sum + calls.length, 0);
  return (said.calls ?? []).map(({ name, arguments: input }, index) => ({
    id: idOf(name, before + index),
    type: 'function',
    function: { name, arguments: input },
  }));
}
