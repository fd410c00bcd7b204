/** A websocket client on bytes: sends frames that no client library would send, and shows every byte of the server. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

export interface FrameToSend {
  readonly opcode: number;
  readonly payload?: string | Buffer;
  /** Default: true. */
  readonly fin?: boolean;
  /** The three reserved bits, 0 to 7. */
  readonly rsv?: number;
  /** Default: true, as it must be. */
  readonly masked?: boolean;
  /** What the header says, if not the length of the payload. */
  readonly length?: bigint;
}

/** The bytes of a frame. */
export function frameBytes({ opcode, payload = '', fin = true, rsv = 0, masked = true, length }: FrameToSend): Buffer {
  const bytes = Buffer.from(payload);
  const said = length ?? BigInt(bytes.length);
  const extended = said < 126n ? 0 : said < 65_536n ? 2 : 8;
  const header = Buffer.alloc(2 + extended);
  header[0] = (fin ? 0x80 : 0) | (rsv << 4) | opcode;
  header[1] = (masked ? 0x80 : 0) | (extended === 0 ? Number(said) : extended === 2 ? 126 : 127);
  if (extended === 2) header.writeUInt16BE(Number(said), 2);
  if (extended === 8) header.writeBigUInt64BE(said, 2);
  if (!masked) return Buffer.concat([header, bytes]);
  const mask = Buffer.from([0x5a, 0xc3, 0x17, 0x88]);
  return Buffer.concat([header, mask, bytes.map((byte, at) => byte ^ (mask[at % 4] ?? 0))]);
}

/** The payload of a close frame. */
export function closePayload(code: number, reason: string | Buffer = ''): Buffer {
  const head = Buffer.alloc(2);
  head.writeUInt16BE(code);
  return Buffer.concat([head, Buffer.from(reason)]);
}

export interface ReceivedFrame {
  readonly opcode: number;
  readonly payload: Buffer;
}

/** How a connection ended: with the code of a close frame, null for one without, or undefined for none at all. */
export type End = number | null | undefined;

export class RawWebsocket {
  /** The answer to the handshake, as it came. */
  readonly answer: string;
  /** All frames that came, the one that closes included. */
  readonly frames: ReceivedFrame[] = [];
  ended = false;
  readonly #socket: Socket;
  #pending: Buffer;
  #waiting: (() => void)[] = [];

  private constructor(socket: Socket, answer: string, rest: Buffer) {
    this.#socket = socket;
    this.answer = answer;
    this.#pending = rest;
    socket.on('data', (chunk: Buffer) => {
      this.#pending = Buffer.concat([this.#pending, chunk]);
      this.#parse();
    });
    socket.on('close', () => {
      this.ended = true;
      this.#wake();
    });
    this.#parse();
  }

  /** Resolves when the answer to the handshake has arrived. */
  static async open(
    port: number,
    path: string,
    headers: Readonly<Record<string, string>> = {},
    { method = 'GET' }: { method?: string } = {},
  ): Promise<RawWebsocket> {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true });
    // Whoever is cut off while writing gets an error before the end: both are the end.
    socket.on('error', () => undefined);
    const fields = {
      host: `127.0.0.1:${port}`,
      upgrade: 'websocket',
      connection: 'Upgrade',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      ...headers,
    };
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`);
    let received = Buffer.alloc(0);
    while (!received.includes('\r\n\r\n')) {
      const [chunk] = await Promise.race([once(socket, 'data'), once(socket, 'close')]);
      if (!Buffer.isBuffer(chunk)) break;
      received = Buffer.concat([received, chunk]);
    }
    const end = received.indexOf('\r\n\r\n') + 4;
    return new RawWebsocket(socket, received.toString('latin1', 0, end), received.subarray(end));
  }

  get upgraded(): boolean {
    return this.answer.startsWith('HTTP/1.1 101 ');
  }

  /** Texts of the text frames that came. */
  get texts(): string[] {
    return this.frames.filter(({ opcode }) => opcode === OPCODE.text).map(({ payload }) => payload.toString());
  }

  /** The close code after the end. */
  get end(): End {
    const close = this.frames.find(({ opcode }) => opcode === OPCODE.close);
    if (close === undefined) return undefined;
    return close.payload.length < 2 ? null : close.payload.readUInt16BE();
  }

  /** @param chop bytes of each write; the system may join them */
  async write(bytes: Buffer, chop: number = bytes.length): Promise<void> {
    for (let at = 0; at < bytes.length && this.#socket.writable; at += Math.max(1, chop)) {
      const part = bytes.subarray(at, at + chop);
      if (this.#socket.write(part)) {
        if (chop < bytes.length) await new Promise((resolve) => setImmediate(resolve));
      } else await Promise.race([once(this.#socket, 'drain'), once(this.#socket, 'close')]);
    }
  }

  send(frame: FrameToSend): Promise<void> {
    return this.write(frameBytes(frame));
  }

  sendText(text: string): Promise<void> {
    return this.send({ opcode: OPCODE.text, payload: text });
  }

  /** Stops reading, so that the server's unsent bytes grow. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Resolves once `met` holds; checked after each frame and at the end. @throws Error after `timeoutMs` */
  async until(met: (socket: this) => boolean, timeoutMs = 15_000): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    while (!met(this)) {
      const left = deadline - performance.now();
      if (this.ended || left <= 0) {
        throw new Error(`${this.ended ? 'the connection ended' : 'no frame arrived'}; received: ${this.#describe()}`);
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#waiting.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  /** Waits for the end; answers the server's close as a client must, unless `answers` is false. */
  async closed({ answers = true, timeoutMs = 15_000 } = {}): Promise<End> {
    const isClose = ({ opcode }: ReceivedFrame): boolean => opcode === OPCODE.close;
    await this.until(({ ended, frames }) => ended || (answers && frames.some(isClose)), timeoutMs);
    const close = this.frames.find(isClose);
    if (close !== undefined) await this.send({ opcode: OPCODE.close, payload: close.payload });
    await this.until(({ ended }) => ended, timeoutMs);
    return this.end;
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #parse(): void {
    while (this.upgraded) {
      const frame = readFrame(this.#pending);
      if (frame === null) break;
      this.frames.push({ opcode: frame.opcode, payload: frame.payload });
      this.#pending = this.#pending.subarray(frame.size);
    }
    this.#wake();
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }

  #describe(): string {
    return this.frames
      .map(({ opcode, payload }) => `${opcode}: ${payload.toString('latin1').slice(0, 200)}`)
      .join('; ');
  }
}

/** Servers do not mask, and Parley does not fragment. */
function readFrame(bytes: Buffer): (ReceivedFrame & { readonly size: number }) | null {
  const [first = 0, second = 0] = bytes;
  const extended = second === 126 ? 2 : second === 127 ? 8 : 0;
  if (bytes.length < 2 + extended) return null;
  if ((first & 0xf0) !== 0x80 || second > 127) throw new TypeError(`not a frame of a server: ${first} ${second}`);
  const length = extended === 0 ? second : extended === 2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
  const from = 2 + extended;
  if (bytes.length < from + length) return null;
  return { opcode: first & 0x0f, payload: bytes.subarray(from, from + length), size: from + length };
}
