/** Two nodes in the process of the test, with the subscribers and event streams of a test. */
import type { ApiClient } from '#test/support/api-client.ts';
import { eventually } from '#test/support/eventually.ts';
import { asRecord } from '#test/support/log-reader.ts';
import type { ParleyHere } from '#test/support/parley-here.ts';

import { newChannel, post, startNodeHere, startTwoNodes, type NodeOptions, type TwoNodes } from './nodes.ts';
import { Subscriber, type Include } from './subscriber.ts';

export interface SubscribeOptions {
  /** Absent: only new events. */
  readonly after?: number;
  /** Default: the one node. */
  readonly at?: ApiClient;
  readonly include?: readonly Include[];
}

/** An event stream, with the bytes received so far. */
export interface EventStream {
  readonly status: number;
  text(): string;
  ended(): boolean;
  close(): void;
}

export interface StreamOptions {
  readonly headers?: Record<string, string>;
  /** Ends the stream. */
  readonly abort?: AbortController;
}

export class Stage {
  readonly nodes: TwoNodes;
  readonly #ownerId: string;
  readonly #subscribers: Subscriber[] = [];
  readonly #streams: AbortController[] = [];
  #texts = 0;

  private constructor(nodes: TwoNodes, ownerId: string) {
    this.nodes = nodes;
    this.#ownerId = ownerId;
  }

  /** @param env further environment variables of both nodes */
  static async start(env: NodeOptions['env'] = {}): Promise<Stage> {
    const nodes = await startTwoNodes(startNodeHere, env);
    const users = asRecord((await nodes.one.api.get('/api/v1/users')).json())['items'];
    return new Stage(nodes, String(asRecord(Array.isArray(users) ? users[0] : undefined)['id']));
  }

  async stop(): Promise<void> {
    await this.clear();
    await this.nodes.stop();
  }

  /** Ends all subscribers and streams. */
  async clear(): Promise<void> {
    for (const abort of this.#streams.splice(0)) abort.abort();
    await Promise.all(this.#subscribers.splice(0).map((subscriber) => subscriber.stop()));
  }

  /** Creates a channel with the key's owner as a participant. */
  createChannel(): Promise<string> {
    const participants = [{ type: 'authenticated_user', user_id: this.#ownerId }];
    return newChannel(this.nodes.one.api, { participants });
  }

  async post(channelId: string, api = this.nodes.one.api): Promise<void> {
    await post(api, channelId, `text ${++this.#texts}`);
  }

  /** Concurrently, at both nodes. */
  async postMany(channelId: string, count: number): Promise<void> {
    const { one, other } = this.nodes;
    await Promise.all(Array.from({ length: count }, (_, n) => this.post(channelId, n % 2 === 0 ? one.api : other.api)));
  }

  subscribe(channelId: string, { after, at = this.nodes.one.api, include = [] }: SubscribeOptions = {}): Subscriber {
    const name = `subscriber ${this.#subscribers.length}`;
    return this.follow(
      new Subscriber({ name, channelId, nodes: [at], include, ...(after !== undefined && { after }) }),
    );
  }

  /** Starts a subscriber that ends with the others. */
  follow(subscriber: Subscriber): Subscriber {
    this.#subscribers.push(subscriber);
    return subscriber.start();
  }

  /** Opens an event stream, without parsing it. */
  async stream(path: string, headers: Record<string, string> = {}, at = this.nodes.one): Promise<EventStream> {
    const abort = new AbortController();
    this.#streams.push(abort);
    return openStream(at, path, { headers, abort });
  }
}

export async function openStream(
  { baseUrl, apiKey }: ParleyHere,
  path: string,
  { headers = {}, abort = new AbortController() }: StreamOptions = {},
): Promise<EventStream> {
  const authorized = { authorization: `Bearer ${apiKey}`, ...headers };
  const response = await fetch(`${baseUrl}${path}`, { headers: authorized, signal: abort.signal });
  let text = '';
  let ended = false;
  const reading = async (): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) text += decoder.decode(chunk, { stream: true });
  };
  reading().then(
    () => (ended = true),
    () => (ended = true),
  );
  return { status: response.status, text: () => text, ended: () => ended, close: () => abort.abort() };
}

export const messagesOf = (events: EventStream) =>
  events
    .text()
    .split('\n\n')
    .flatMap((message) => {
      const [, id, data] = /^id: (\d+)\ndata: (.*)$/s.exec(message) ?? [];
      return data === undefined ? [] : [{ id: Number(id), data }];
    });

export const framesOf = ({ sessions }: Subscriber) =>
  sessions.flatMap(({ frames }) => frames.map((text) => asRecord(JSON.parse(text))));
export const eventsOf = (subscriber: Subscriber) => framesOf(subscriber).filter(({ frame }) => frame === 'event');
export const sequencesOf = (subscriber: Subscriber) => eventsOf(subscriber).map(({ seq }) => seq);
export const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, n) => first + n);

export async function isLive(subscriber: Subscriber): Promise<void> {
  await eventually(() => subscriber.live);
}
