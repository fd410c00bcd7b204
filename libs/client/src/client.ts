import createFetchClient, { type Client } from 'openapi-fetch';

import type { paths } from './api.generated.ts';
import { refusalOf } from './errors.ts';
import type { ParticipantReadMarker, ReadMarker } from './events.ts';
import type { Ticket, TicketSource } from './tickets.ts';
import { ChannelSubscription, type SubscribeOptions } from './subscription.ts';
import { withToken, type TokenSource } from './tokens.ts';
import { ChannelView, type OpenOptions } from './view.ts';
import type { WebSocketConstructor } from './websocket.ts';

export interface ClientOptions {
  /** URL of Parley, such as `https://parley.example.org`. */
  readonly url: string;
  /** For servers and command lines. A web page passes `token`, or `tickets` and a `fetch` that calls its backend. */
  readonly apiKey?: string | undefined;
  /** Fetches a token of the user that reads the page, from the backend of the page; again when it has expired. */
  readonly token?: TokenSource | undefined;
  /** Source of tickets for channels. Default: requests them from Parley with the API key. */
  readonly tickets?: TicketSource | undefined;
  /** Default: that of the runtime. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Default: that of the runtime; where it has none (Node 20), the one of the package `ws`, if that is installed. */
  readonly WebSocket?: WebSocketConstructor | undefined;
}

/** The REST API, typed: `rest.GET('/api/v1/channels/{id}', { params: { path: { id } } })` gives `{ data, error, response }`. */
export type RestClient = Client<paths>;

/** Client of one Parley. Holds no connections by itself. */
export class ParleyClient {
  readonly rest: RestClient;
  readonly #url: URL;
  readonly #options: ClientOptions;

  /** @throws TypeError if `url` is not an http or https URL */
  constructor(options: ClientOptions) {
    this.#url = new URL(options.url);
    if (!/^https?:$/.test(this.#url.protocol)) throw new TypeError(`url must be http or https; it is ${options.url}`);
    this.#options = options;
    const { apiKey, token } = options;
    const fetch = token === undefined ? options.fetch : withToken(token, options.fetch);
    this.rest = createFetchClient<paths>({
      baseUrl: this.#url.href.replace(/\/$/, ''),
      ...(apiKey !== undefined && { headers: { authorization: `Bearer ${apiKey}` } }),
      ...(fetch !== undefined && { fetch }),
    });
  }

  channel(id: string): ChannelHandle {
    return new ChannelHandle(id, {
      rest: this.rest,
      url: this.#socketUrl(id),
      tickets: this.#options.tickets ?? ((channelId, signal) => this.#fetchTicket(channelId, signal)),
      WebSocket: this.#options.WebSocket,
    });
  }

  #socketUrl(channelId: string): string {
    const base = this.#url.href.replace(/\/$/, '').replace(/^http/, 'ws');
    return `${base}/api/v1/channels/${encodeURIComponent(channelId)}/websocket`;
  }

  #fetchTicket(id: string, signal: AbortSignal): Promise<Ticket> {
    return dataOf(this.rest.POST('/api/v1/channels/{id}/websocket_ticket', { params: { path: { id } }, signal }));
  }
}

interface ChannelParts {
  readonly rest: RestClient;
  readonly url: string;
  readonly tickets: TicketSource;
  readonly WebSocket: WebSocketConstructor | undefined;
}

export class ChannelHandle {
  readonly id: string;
  readonly #rest: RestClient;
  readonly #parts: Omit<ChannelParts, 'rest'>;

  constructor(id: string, { rest, ...parts }: ChannelParts) {
    this.id = id;
    this.#rest = rest;
    this.#parts = parts;
  }

  subscribe(options: SubscribeOptions = {}): ChannelSubscription {
    return new ChannelSubscription({ channelId: this.id, ...this.#parts }, options);
  }

  /** The channel as a page shows it: newest interactions, live, and older ones on demand. */
  open(options: OpenOptions = {}): ChannelView {
    const rest = this.#rest;
    const path = { id: this.id };
    return new ChannelView(
      {
        subscribe: (subscribing) => this.subscribe(subscribing),
        page: (size, before, signal) => {
          const query = {
            size,
            include_incomplete: true,
            include_reactors: true,
            ...(before !== null && { before_sequence: before }),
          };
          const request = { params: { path, query }, ...(signal && { signal }) };
          return dataOf(rest.GET('/api/v1/channels/{id}/interactions', request));
        },
        channel: async (signal) => {
          const call = rest.GET('/api/v1/channels/{id}', { params: { path }, signal });
          const channel = await dataOf(call);
          // The revision of its last change; a proxy that compresses makes it weak: W/"12".
          const revision = /\d+/.exec((await call).response.headers.get('etag') ?? '');
          return [channel, revision === null ? 0 : Number(revision[0]) + 1];
        },
      },
      options,
    );
  }

  /**
   * Moves the read marker of the calling user forward, for all of its devices: the event `readMarker` of their subscriptions.
   *
   * @param sequence of the last event that the user has seen
   * @throws ApiError
   */
  markRead(sequence: number): Promise<ReadMarker> {
    const params = { path: { id: this.id } };
    return dataOf(this.#rest.PUT('/api/v1/channels/{id}/read_marker', { params, body: { sequence } }));
  }

  /** How far the calling user has read, and the number of messages after that. @throws ApiError */
  readMarker(): Promise<ReadMarker> {
    return dataOf(this.#rest.GET('/api/v1/channels/{id}/read_marker', { params: { path: { id: this.id } } }));
  }

  /** How far each user that takes part has read. @throws ApiError */
  async readMarkers(): Promise<readonly ParticipantReadMarker[]> {
    const params = { path: { id: this.id } };
    return (await dataOf(this.#rest.GET('/api/v1/channels/{id}/read_markers', { params }))).items;
  }
}

interface Answer<T> {
  readonly data?: T;
  readonly error?: unknown;
  readonly response: Response;
}

/** @throws ApiError if the call is refused */
async function dataOf<T>(call: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await call;
  if (data === undefined) throw refusalOf(response, error);
  return data;
}
