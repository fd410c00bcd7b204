/**
 * Posts at a fixed rate, or as fast as they are answered; sockets in the same process, and so on the same clock, receive
 * the frame of each. Latency counts from when a post fell due to when its frame was read.
 */
import { once } from 'node:events';

import { WebSocket } from 'ws';

import { answerTasks, cpuSecondsOf } from '../child-process.ts';
import { percentile } from '../statistics.ts';
import { Connection, fail, type HttpRequest } from './http-connection.ts';
import { warmUp } from './warm-up.ts';

export interface PostToFrame {
  readonly host: string;
  readonly port: number;
  /** Processes whose processor time counts, with that of their child processes. */
  readonly pids: readonly number[];
  /** One connection for each; with a `########` in its body that appears in the frame, after `order `. */
  readonly requests: readonly HttpRequest[];
  /** Of each channel. */
  readonly sockets: readonly SubscribedSocket[];
  /** Posts per second in open loop; closed loop if absent. */
  readonly rate?: number;
  /** At least: see {@link warmUp}. */
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

export interface SubscribedSocket {
  readonly path: string;
  readonly protocols: readonly string[];
  readonly greeting?: string;
  /** Frames that come before the socket is subscribed. */
  readonly framesFirst: number;
}

export interface PostToFrameResult {
  /** Frames of the posts that fell due after the warm-up. */
  readonly frames: number;
  readonly refused: number;
  /** Posts that were answered and got no frame. */
  readonly missing: number;
  readonly p50: number;
  readonly p99: number;
  readonly lagP99: number;
  /** Of the server's processes, from the end of the warm-up to the last post. */
  readonly cpuSeconds: number;
}

const MARK = /order (\d{8})/;
const PING = '{"frame":"ping"';

answerTasks<PostToFrame, PostToFrameResult>(async (task) => {
  const dueAt = new Map<number, number>();
  const latencies: number[] = [];
  let refused = 0;
  const measured = { from: Infinity, until: Infinity };

  const onFrame = (text: string): void => {
    const due = dueAt.get(Number(MARK.exec(text)?.[1]));
    if (due === undefined) return;
    dueAt.delete(Number(MARK.exec(text)?.[1]));
    if (due >= measured.from && due < measured.until) latencies.push(performance.now() - due);
  };
  for (const socket of task.sockets) await subscribe(task, socket, onFrame);

  /** Connections without a request, and due times without a connection; taken from the front. */
  const idle: Connection[] = [];
  const waiting: number[] = [];
  const send = (connection: Connection, due: number): void => void dueAt.set(connection.send(due), due);
  const onAnswer = (connection: Connection, statusLine: string): void => {
    if (!statusLine.startsWith('HTTP/1.1 2')) refused += 1;
    const now = performance.now();
    const next = task.rate === undefined && now < measured.until ? now : waiting.shift();
    if (next === undefined) idle.push(connection);
    else send(connection, next);
  };
  idle.push(...task.requests.map((request) => new Connection(task, request, onAnswer)));

  if (task.rate === undefined) for (const connection of idle.splice(0)) send(connection, performance.now());
  const loop = task.rate === undefined ? [] : openLoop(1000 / task.rate, measured, onDue);
  await warmUp(task.pids, task.warmUpSeconds);
  const before = await cpuSecondsOf(...task.pids);
  measured.from = performance.now();
  measured.until = measured.from + task.seconds * 1000;
  await new Promise((resolve) => setTimeout(resolve, task.seconds * 1000));
  const lags = await loop;
  const cpuSeconds = (await cpuSecondsOf(...task.pids)) - before;
  // Waits for outstanding frames, or the slowest would not count.
  for (let tries = 0; dueAt.size > 0 && tries < 400; tries++) await new Promise((resolve) => setTimeout(resolve, 50));
  return {
    frames: latencies.length,
    refused,
    missing: dueAt.size,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    lagP99: lags.length === 0 ? 0 : percentile(lags, 0.99),
    cpuSeconds,
  };

  function onDue(due: number): void {
    const connection = idle.shift();
    if (connection === undefined) waiting.push(due);
    else send(connection, due);
  }
});

/** Resolves when the socket is subscribed. */
async function subscribe(
  { host, port }: PostToFrame,
  { path, protocols, greeting, framesFirst }: SubscribedSocket,
  onFrame: (text: string) => void,
): Promise<void> {
  const socket = new WebSocket(`ws://${host}:${port}${path}`, [...protocols], { perMessageDeflate: false });
  socket.on('error', fail);
  socket.on('close', (code) => fail(new Error(`the server closed a socket: ${code}`)));
  let first = 0;
  const subscribed = new Promise<void>((listening) => {
    socket.on('message', (data: Buffer) => {
      first += 1;
      if (first === framesFirst) listening();
      // Read as text up to the mark: a client would parse all of it, which is not the server's time.
      const text = data.toString('latin1');
      if (text.startsWith(PING)) socket.send('{"frame":"pong"}');
      else onFrame(text);
    });
  });
  await once(socket, 'open');
  if (greeting !== undefined) socket.send(greeting);
  await subscribed;
}

/** @returns the delays of this process in sending what was due, after the warm-up, in milliseconds */
async function openLoop(
  periodMs: number,
  measured: { readonly from: number; readonly until: number },
  onDue: (due: number) => void,
): Promise<number[]> {
  const lags: number[] = [];
  let next = performance.now();
  for (let now = next; now < measured.until; now = performance.now()) {
    if (now >= measured.from) lags.push(now - next);
    for (; next <= now; next += periodMs) onDue(next);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return lags;
}
