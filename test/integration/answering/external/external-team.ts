/** What the tests of external agents share: an agent with the key of its team, and a server for its webhook. */
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

import { afterAll, beforeAll, expect } from 'vitest';

import { eventually } from '#test/support/eventually.ts';
import { type Asked, type Json, RunsApi } from '#test/support/runs-api.ts';

export interface Hook {
  readonly server: Server;
  readonly port: number;
  /** Answers for the next requests; then 204. */
  readonly answers: ((response: ServerResponse) => void)[];
  readonly received: { readonly headers: IncomingHttpHeaders; readonly body: string }[];
}

export async function startHook(): Promise<Hook> {
  const answers: Hook['answers'] = [];
  const received: Hook['received'] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      received.push({ headers: request.headers, body });
      const answer = answers.shift();
      if (answer === undefined) response.writeHead(204).end();
      else answer(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, port: (server.address() as AddressInfo).port, answers, received };
}

export let hook: Hook;
export let api: RunsApi;
export let origin: string;
export let agentId: string;
export let key: string;

export const keyFor = async (id: string): Promise<string> => {
  const body = { name: 'team', scopes: ['agent'], principal: { type: 'service', id } };
  return (await api.call('POST', '/api/v1/keys', body)).json.key;
};

export const team = (method: 'GET' | 'POST', asked: Asked, what: string, body?: object, as = key) =>
  api.call(method, `/api/v1/runs/${asked.runId}/${what}`, body, as);

/** A run that a worker has handed over. */
export async function handedOver(text = 'Are you there?', options: Parameters<RunsApi['ask']>[1] = {}): Promise<Asked> {
  const asked = await api.ask(text, { agentId, ...options });
  await eventually(async () => expect(await api.types(asked.runId)).toContain('RunHandedOver'));
  return asked;
}

/** Frames of the invocations of an agent after a sequence, as far as they are there. */
export async function framesAfter(sequence: number, count: number, id = agentId, as = key): Promise<Json[]> {
  const abort = new AbortController();
  const headers = { authorization: as, accept: 'text/event-stream', 'last-event-id': String(sequence) };
  const url = `${origin}/api/v1/agents/${id}/invocations/events`;
  const { body, status } = await fetch(url, { headers, signal: abort.signal });
  expect(status).toBe(200);
  let read = '';
  const frames = () =>
    read
      .split('\n\n')
      .slice(0, -1)
      .flatMap((one) => [...one.matchAll(/^data: (.*)$/gm)].map(([, json = '']) => JSON.parse(json) as Json));
  for await (const chunk of body!.pipeThrough(new TextDecoderStream())) {
    read += chunk;
    if (frames().length >= count) break;
  }
  abort.abort();
  return frames();
}

/** What the inbox of the agent tells of the end of a run. */
export const told = (asked: Asked): Promise<Json> =>
  eventually(async () => {
    const events = (await api.documents.events(`inbox-${asked.agentId}`)).map(({ type, data }): Json => ({
      type,
      data,
    }));
    const ends = events.filter(({ type, data }) => type === 'InvocationEnded.v1' && data.runId === asked.runId);
    expect(ends).toHaveLength(1);
    const { status, reason } = ends[0].data;
    return { status, reason };
  });

export const roles = async (asked: Asked): Promise<string[]> =>
  (await api.tree(asked)).map(({ content_role }) => content_role);

/** Frames of a stream of events from now on, which grow as they arrive. */
export async function follow(
  path: string,
  as: string,
): Promise<{ readonly frames: Json[]; readonly stop: () => void }> {
  const abort = new AbortController();
  const headers = { authorization: as, accept: 'text/event-stream' };
  const { body, status } = await fetch(`${origin}${path}`, { headers, signal: abort.signal });
  expect(status).toBe(200);
  const frames: Json[] = [];
  const read = async (): Promise<void> => {
    let text = '';
    for await (const chunk of body!.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      frames.splice(0, Infinity, ...[...text.matchAll(/^data: (.*)\n\n/gm)].map(([, json = '']) => JSON.parse(json)));
    }
  };
  void read().catch(() => undefined);
  return { frames, stop: () => abort.abort() };
}

/** Starts the API, the agent and its server for the file. */
export function useExternalTeam(): void {
  beforeAll(async () => {
    hook = await startHook();
    api = await RunsApi.start({ fetch: { allowHosts: [{ host: '127.0.0.1', port: hook.port }] } });
    origin = await api.documents.api.listen();
    agentId = (await api.newAgent({ name: 'Echo', runtime: 'external' })).id;
    key = await keyFor(agentId);
  });
  afterAll(async () => {
    await api?.stop();
    hook?.server.close();
    hook?.server.closeAllConnections();
  });
}
