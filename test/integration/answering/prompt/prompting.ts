/** What the tests of prompts share: runs in direct channels, with a real server that speaks the OpenAI API as the model. */
import { afterAll, beforeAll, expect } from 'vitest';

import { type Answer as ModelAnswer, type ModelServer, startModelServer } from '#test/support/model-server.ts';
import { type Json, RunsApi } from '#test/support/runs-api.ts';
import type { Answer } from '#test/support/test-api.ts';

/** Also the slowest machine answers within this. */
export const PATIENT_MS = 600_000;

export const prompts = { timeoutMs: PATIENT_MS, publicPerAddress: 0, publicPerAgent: 1 };
export let server: ModelServer;
export let api: RunsApi;
export let origin: string;

export const newAgent = async (): Promise<string> => (await api.newAgent({ name: 'Ada' })).id;
export const urlOf = (agent: string): string => `/api/v1/agents/${agent}/prompt`;
export const prompt = (agent: string, body: object = {}, headers = {}, key?: string): Promise<Answer> =>
  api.documents.call('POST', urlOf(agent), body, headers, key);
export const text = ({ content }: Json): string => content.map((item: Json) => item.text).join('');

export async function interactionsOf(channel: string): Promise<Json[]> {
  const { json } = await api.call('GET', `/api/v1/channels/${channel}/interactions?order=asc`);
  return json.items;
}

/** An answer of the model that waits until the test lets it go. */
export function held(answer: ModelAnswer): { readonly answer: ModelAnswer; release(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return {
    answer: async (...args) => {
      await promise;
      await answer(...args);
    },
    release: () => resolve(),
  };
}

export interface ServerEvent {
  readonly id: string | undefined;
  readonly event: string | undefined;
  readonly data: Json;
}

/** The events of a stream as they arrive; leaving the loop disconnects. */
export async function* eventsOf(
  agent: string,
  body: object,
  headers: Record<string, string> = {},
): AsyncGenerator<ServerEvent> {
  const gone = new AbortController();
  const { api: test } = api.documents;
  const response = await fetch(`${origin}/api/v1/agents/${agent}/stream_prompt`, {
    method: 'POST',
    headers: { authorization: test.rootKey, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    signal: gone.signal,
  });
  expect(response.status).toBe(200);
  let received = '';
  try {
    for await (const chunk of response.body ?? []) {
      received += Buffer.from(chunk).toString();
      const blocks = received.split('\n\n');
      received = blocks.pop() ?? '';
      yield* blocks.filter((block) => !block.startsWith(':')).map(parsedEvent);
    }
  } finally {
    gone.abort();
  }
}

export function parsedEvent(block: string): ServerEvent {
  const fields = new Map(
    // Readers in Python end lines at more characters than the standard does.
    block
      .split(/[\n\u0085\u2028\u2029]/)
      .map((line) => [line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)]),
  );
  return { id: fields.get('id'), event: fields.get('event'), data: JSON.parse(fields.get('data') ?? '') };
}

export async function allEvents(...args: Parameters<typeof eventsOf>): Promise<ServerEvent[]> {
  const events: ServerEvent[] = [];
  for await (const event of eventsOf(...args)) events.push(event);
  return events;
}

export const shown = ({ event, data }: ServerEvent): string => event ?? data.type ?? data.frame;

/** Starts the model and the API for the file. */
export function usePrompts(): void {
  beforeAll(async () => {
    server = await startModelServer();
    const limits = { totalMs: 60_000, firstPartMs: 60_000, idleMs: 60_000, maxAttempts: 1 };
    api = await RunsApi.start({ prompts, model: { baseUrl: server.baseUrl, name: 'small', limits } });
    origin = await api.documents.api.listen();
  });
  afterAll(async () => {
    await api?.stop();
    await server?.stop();
  });
}
