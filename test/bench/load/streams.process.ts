/** Clients of streamed answers: how long after the model has written a token each one reads it. */
import { request } from 'node:http';

import { answerTasks } from '../child-process.ts';
import { percentile } from '../statistics.ts';

export interface StreamsTask {
  /** `http://127.0.0.1:4000` */
  readonly origin: string;
  readonly headers: Readonly<Record<string, string>>;
  /** For each client: what it posts to, and what it follows; null where the answer to the post is the stream. */
  readonly clients: readonly { readonly post: string; readonly follow: string | null }[];
  readonly body: string;
  /** How often each client posts. */
  readonly posts: number;
  /** Whether clients post at once, or one after the other. */
  readonly isParallel: boolean;
  /** Whether answers may be refused or fail, as more than the queue of a channel holds. Default: that ends the process. */
  readonly mayFail?: boolean;
}

export interface StreamsResult {
  /** In milliseconds, of the first token of each answer. */
  readonly firsts: { readonly p50: number; readonly p99: number };
  /** Of all tokens. */
  readonly all: { readonly p50: number; readonly p99: number };
  readonly tokens: number;
}

const firsts: number[] = [];
const all: number[] = [];

answerTasks(async ({ clients, posts, isParallel, ...task }: StreamsTask): Promise<StreamsResult> => {
  const readers = await Promise.all(clients.map((client) => Reader.open(task, client)));
  for (let n = 0; n < posts; n += 1) {
    if (isParallel) await Promise.all(readers.map((reader) => reader.ask()));
    else for (const reader of readers) await reader.ask();
  }
  const of = (values: readonly number[]) => ({ p50: percentile(values, 0.5), p99: percentile(values, 0.99) });
  return { firsts: of(firsts), all: of(all), tokens: all.length };
});

type Place = Pick<StreamsTask, 'origin' | 'headers' | 'body' | 'mayFail'>;

class Reader {
  readonly #place: Place;
  readonly #client: StreamsTask['clients'][number];
  #rest = '';
  #isFirst = true;
  #ended: () => void = () => undefined;

  static async open(place: Place, client: StreamsTask['clients'][number]): Promise<Reader> {
    const reader = new Reader(place, client);
    if (client.follow !== null) await reader.#stream('GET', client.follow);
    return reader;
  }

  constructor(place: Place, client: StreamsTask['clients'][number]) {
    this.#place = place;
    this.#client = client;
  }

  /** Resolves when the answer is complete. */
  async ask(): Promise<void> {
    this.#isFirst = true;
    const ended = new Promise<void>((resolve) => (this.#ended = resolve));
    const { post, follow } = this.#client;
    if (follow === null) await this.#stream('POST', post);
    else
      await fetch(this.#place.origin + post, { method: 'POST', headers: this.#place.headers, body: this.#place.body });
    await ended;
  }

  /** Resolves with its head. */
  #stream(method: string, path: string): Promise<void> {
    const { headers, origin, body } = this.#place;
    return new Promise((resolve, reject) => {
      const sent = request(origin + path, { method, headers, agent: false }, (response) => {
        if (response.statusCode !== 200) return reject(new Error(`${method} ${path}: ${response.statusCode}`));
        response.setEncoding('utf8');
        response.on('data', (text: string) => this.#read(text));
        response.on('end', () => this.#ended());
        return resolve();
      });
      sent.on('error', reject);
      sent.end(method === 'POST' ? body : undefined);
    });
  }

  #read(text: string): void {
    const now = Number(process.hrtime.bigint() / 1_000n);
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      const hasFailed = line.includes('"content_role":"internal_error"');
      if (hasFailed && this.#place.mayFail !== true) throw new Error(`a run has failed: ${line}`);
      if (line.includes('"type":"interaction.completed"')) this.#ended();
      // Other frames hold the text again.
      if (line.includes('"frame":"event"') || line.startsWith('id:')) continue;
      for (const [, written] of line.matchAll(/@(\d+)@/g)) this.#late((now - Number(written)) / 1_000);
    }
  }

  #late(ms: number): void {
    if (this.#isFirst) firsts.push(ms);
    this.#isFirst = false;
    all.push(ms);
  }
}
