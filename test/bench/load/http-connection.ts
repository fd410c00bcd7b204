/** A keep-alive connection for one prepared request at a time; parses answers only to find their end. */
import { connect, type Socket } from 'node:net';

export interface HttpServer {
  readonly host: string;
  readonly port: number;
}

/** Each `########` in a header or the body becomes a number that is new in every request of the process. */
export interface HttpRequest {
  readonly method: string;
  /** One of several is chosen at random for each request, or they take turns. */
  readonly path: string | readonly string[];
  readonly takeTurns?: boolean;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

const COUNTER = '########';
const HEAD_END = Buffer.from('\r\n\r\n');
let counter = 10_000_000;

/** Called with each answer, in the order of the requests. */
export type OnAnswer = (connection: Connection, statusLine: string) => void;

export class Connection {
  readonly #socket: Socket;
  /** Head and body, for each path. */
  readonly #texts: readonly string[];
  readonly #takeTurns: boolean;
  #sent = 0;
  readonly #onAnswer: OnAnswer;
  #pending: Buffer = Buffer.alloc(0);
  dueAt = 0;

  constructor(server: HttpServer, request: HttpRequest, onAnswer: OnAnswer) {
    const { method, path, headers, body = '', takeTurns = false } = request;
    const fields = Object.entries({
      host: `${server.host}:${server.port}`,
      ...headers,
      ...(body !== '' && { 'content-length': String(Buffer.byteLength(body)) }),
    });
    const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    this.#texts = [path].flat().map((one) => `${method} ${one} HTTP/1.1\r\n${lines}\r\n${body}`);
    this.#takeTurns = takeTurns;
    this.#onAnswer = onAnswer;
    this.#socket = connect({ host: server.host, port: server.port, noDelay: true });
    this.#socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    this.#socket.on('error', fail);
    this.#socket.on('close', () => fail(new Error('the server closed a connection')));
  }

  /** @returns the value of the counter in the request */
  send(dueAt: number): number {
    this.dueAt = dueAt;
    counter += 1;
    const count = this.#texts.length;
    const text = this.#texts[this.#takeTurns ? this.#sent++ % count : Math.floor(Math.random() * count)] ?? '';
    this.#socket.write(text.replaceAll(COUNTER, String(counter)), 'latin1');
    return counter;
  }

  #receive(chunk: Buffer): void {
    const buffer = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    const headEnd = buffer.indexOf(HEAD_END);
    const head = headEnd < 0 ? '' : buffer.toString('latin1', 0, headEnd);
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 'NaN');
    if (headEnd < 0 || buffer.length < headEnd + 4 + length) {
      this.#pending = buffer;
      return;
    }
    if (Number.isNaN(length)) fail(new Error(`an answer without a length: ${head}`));
    this.#pending = buffer.subarray(headEnd + 4 + length);
    this.#onAnswer(this, head.slice(0, head.indexOf('\r\n')));
  }
}

/** A load with an unexpected answer measures nothing: it ends. */
export function fail(error: Error): never {
  console.error(error);
  process.exit(1);
}
