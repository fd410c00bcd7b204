/** Thousands of websocket clients in a process of their own, see sockets.c. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { compile } from './c-program.ts';

export interface SocketsOptions {
  /** Port of the server on this machine. */
  readonly port: number;
  /** One for each connection, taken in order. */
  readonly requests: readonly SocketRequest[];
  /** How to make the server send one event to all sockets; absent if no event is sent. */
  readonly trigger?: Trigger | undefined;
  /** Length of an event where frames are parts of a stream of events, see sockets.c. Default: each frame is one event. */
  readonly messageBytes?: number | undefined;
}

export interface SocketRequest {
  readonly path: string;
  readonly protocols?: readonly string[];
  /** Text frame to send once it is open. */
  readonly greeting?: string;
}

export type Trigger =
  /** Each byte to this port is an event. */
  | { readonly port: number }
  /** Each `text` to this port is an event; `preface` precedes them. */
  | { readonly port: number; readonly preface: string; readonly text: string }
  /** Messages with lines of `template`, whose `@SEQ@` are replaced by `sequence`, counting up. */
  | { readonly redisUrl: string; readonly topic: string; readonly template: string; readonly sequence: number };

export interface Sockets {
  /** Connects that many more; resolves when each has received that many frames. */
  open(count: number, frames: number): Promise<{ readonly seconds: number }>;
  /** Triggers events one after the other, each when all sockets have received the previous one. */
  fan(of: { readonly seconds: number; readonly perTick: number }): Promise<{
    readonly frames: number;
    readonly seconds: number;
    /** Fraction of a core that it used. */ readonly cpu: number;
  }>;
  /** Connects, waits for one frame, closes the connection; that many at a time. */
  handshakes(of: {
    readonly warmUpSeconds: number;
    readonly seconds: number;
    readonly atATime: number;
  }): Promise<{ readonly handshakes: number; readonly seconds: number; readonly cpu: number }>;
  stop(): Promise<void>;
}

export async function startSockets({ port, requests, trigger, messageBytes = 0 }: SocketsOptions): Promise<Sockets> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-bench-sockets-'));
  const file = join(folder, 'requests');
  await writeFile(
    file,
    requests.map((request) => record(opening(request)) + record(greeting(request))).join(''),
    'latin1',
  );
  const child = spawn(
    await compile('load/sockets.c'),
    [String(port), file, ...triggerArguments(trigger), String(messageBytes)],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  const ended = once(child, 'exit').then(([code, signal]) => {
    throw new Error(`the sockets ended (${String(code ?? signal)})`);
  });
  ended.catch(() => undefined);
  child.stdin.on('error', () => undefined);
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();

  async function ask<Answer>(command: string): Promise<Answer> {
    child.stdin.write(`${command}\n`);
    const line = await Promise.race([lines.next(), ended]);
    if (line.done === true) return ended;
    return JSON.parse(line.value) as Answer;
  }
  return {
    open: (count, frames) => ask(`open ${count} ${frames}`),
    fan: ({ seconds, perTick }) => ask(`fan ${seconds} ${perTick}`),
    handshakes: ({ warmUpSeconds, seconds, atATime }) => ask(`handshakes ${warmUpSeconds} ${seconds} ${atATime}`),
    async stop() {
      child.kill('SIGKILL');
      await ended.catch(() => undefined);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const record = (bytes: string): string => `${Buffer.byteLength(bytes, 'latin1')}\n${bytes}`;

function opening({ path, protocols = [] }: SocketRequest): string {
  const fields = [
    'Host: 127.0.0.1',
    'Upgrade: websocket',
    'Connection: Upgrade',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ...(protocols.length > 0 ? [`Sec-WebSocket-Protocol: ${protocols.join(', ')}`] : []),
  ];
  return `GET ${path} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`;
}

/** A masked text frame; the mask is zeros, which leave the text unchanged. */
function greeting({ greeting = '' }: SocketRequest): string {
  if (greeting.length > 125) throw new RangeError('a greeting has at most 125 bytes');
  return greeting === '' ? '' : `\x81${String.fromCharCode(0x80 | greeting.length)}\0\0\0\0${greeting}`;
}

function triggerArguments(trigger: Trigger | undefined): string[] {
  if (trigger === undefined) return ['0', '', '', '', '0'];
  if ('text' in trigger) return [String(trigger.port), '', trigger.text, trigger.preface, '0'];
  if (!('redisUrl' in trigger)) return [String(trigger.port), '', '', '', '0'];
  const { port, password } = new URL(trigger.redisUrl);
  const preface = password === '' ? '' : `AUTH ${password}\r\n`;
  return [port, trigger.topic, trigger.template, preface, String(trigger.sequence)];
}
