import type { Readable } from 'node:stream';

import { LRUCache } from 'lru-cache';

import type { FetcherOptions } from '#libs/platform/fetch/index.ts';

import { type ChatEndpoint, ChatExchange, type ModelPrices } from './chat-exchange.ts';
import { textOf } from './chat-stream.ts';
import { endpointConnection } from './endpoint-connection.ts';
import type { ModelLimits } from './model.deadlines.ts';
import { EndpointError } from './model.failures.ts';
import type { Model } from './model.ts';

export interface ModelEndpointOptions extends Pick<FetcherOptions, 'metrics' | 'nameServers'> {
  /** `https://api.example.com/v1`: `/chat/completions` is appended. */
  readonly baseUrl: string;
  readonly apiKey?: string | undefined;
  /** The model of calls that name none. */
  readonly name: string;
  /** Of `name`: calls of other models have no cost. */
  readonly prices?: ModelPrices | null;
  readonly limits?: ModelLimits;
}

export interface ModelEndpoint extends Model {
  /** Ends all answers. */
  close(): Promise<void>;
}

const DEFAULTS: Required<ModelLimits> = {
  totalMs: 120_000,
  firstPartMs: 60_000,
  idleMs: 30_000,
  maxBytes: 32 * 1024 * 1024,
  maxAttempts: 4,
};

/** Models of the endpoint whose refusals are remembered. */
const MAX_MODELS = 200;

/** Any endpoint with the chat completions of the OpenAI API. */
export function openAICompatibleModel(options: ModelEndpointOptions): ModelEndpoint {
  const { baseUrl, apiKey, name, prices = null } = options;
  const limits = { ...DEFAULTS, ...options.limits };
  const connection = endpointConnection(baseUrl, options);

  async function send(body: object, traceparent: string | undefined, signal: AbortSignal): Promise<Readable> {
    const response = await connection.post('/chat/completions', {
      headers: {
        'content-type': 'application/json',
        ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
        ...(traceparent !== undefined && { traceparent }),
      },
      accept: 'text/event-stream, application/json',
      body: JSON.stringify(body),
      maxBytes: limits.maxBytes,
      timeoutMs: limits.totalMs,
      signal,
    });
    if (response.status >= 200 && response.status < 300) return response.body;
    throw new EndpointError(response.status, response.headers, await textOf(response.body));
  }

  const endpoint: ChatEndpoint = {
    baseUrl,
    name,
    limits,
    prices,
    refused: new LRUCache({ max: MAX_MODELS }),
    send,
    // Endpoints repeat the key that they refuse.
    withoutSecrets: (text) => (apiKey === undefined || apiKey === '' ? text : text.replaceAll(apiKey, '[redacted]')),
  };
  return {
    kind: 'openai-compatible',
    name,
    server: connection.server,
    stream: (call, caller) => new ChatExchange(endpoint, call).parts(caller),
    close: () => connection.close(),
  };
}
