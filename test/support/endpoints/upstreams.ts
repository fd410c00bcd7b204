/**
 * Fakes of the APIs behind LiteLLM, on loopback: Anthropic's Messages and Gemini's generateContent. They are stateless and
 * strict. The last text of the user says how many rounds of tools an answer takes: `(2 rounds)`.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

import { z } from 'zod';

import { sendEvents, sendJson } from './endpoint.ts';
import { messagesOf } from './upstream.anthropic.ts';
import { contentsOf } from './upstream.gemini.ts';
import { Refused } from './upstream.ts';

/** What an upstream says to one request. */
export interface Reply {
  readonly events: readonly string[];
  /** What it refuses; null: the request is accepted. */
  readonly refusal: string | null;
}

export interface Upstreams {
  readonly port: number;
  /** In order of arrival: null for a request that was accepted. */
  readonly refusals: (string | null)[];
  stop(): Promise<void>;
}

export async function startUpstreams(): Promise<Upstreams> {
  const refusals: (string | null)[] = [];
  const server = createServer((request, response) => {
    void json(request).then((body) => {
      const isAnthropic = request.url?.startsWith('/v1/messages') === true;
      const { events, refusal } = checked(() => (isAnthropic ? messagesOf(body) : contentsOf(body)));
      refusals.push(refusal);
      if (refusal === null) sendEvents(response, events);
      else if (isAnthropic) {
        sendJson(response, 400, { type: 'error', error: { type: 'invalid_request_error', message: refusal } });
      } else sendJson(response, 400, { error: { code: 400, message: refusal, status: 'INVALID_ARGUMENT' } });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    refusals,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function checked(reply: () => readonly string[]): Reply {
  try {
    return { events: reply(), refusal: null };
  } catch (error) {
    if (error instanceof Refused) return { events: [], refusal: error.message };
    if (error instanceof z.ZodError) return { events: [], refusal: z.prettifyError(error) };
    throw error;
  }
}
