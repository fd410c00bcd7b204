/**
 * Posts fall due at a fixed rate; a socket in the same process, and so on the same clock, receives the frame of each.
 * Latency counts from when a post fell due to when its frame was read.
 */
import { WebSocket } from 'ws';

import { answerTasks } from '../child-process.ts';
import { percentile } from '../statistics.ts';
import { Connection, fail, type HttpRequest } from './http-connection.ts';

export interface PostToFrame {
  readonly host: string;
  readonly port: number;
  /** With a `########` in its body that appears in the frame, after `order `. */
  readonly request: HttpRequest;
  readonly socket: { readonly path: string; readonly protocols: readonly string[]; readonly greeting?: string };
  /** Frames that come before the socket is subscribed. */
  readonly framesFirst: number;
  readonly connections: number;
  readonly rate: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

export interface PostToFrameResult {
  readonly frames: number;
  readonly refused: number;
  /** Posts that were answered and got no frame. */
  readonly missing: number;
  readonly p50: number;
  readonly p99: number;
  readonly lagP99: number;
}

const MARK = /order (\d{8})/;

answerTasks<PostToFrame, PostToFrameResult>(async (task) => {
  const dueAt = new Map<number, number>();
  const latencies: number[] = [];
  const lags: number[] = [];
  let [refused, first] = [0, 0];
  let [from, until] = [Infinity, Infinity];

  const socket = new WebSocket(`ws://${task.host}:${task.port}${task.socket.path}`, [...task.socket.protocols], {
    perMessageDeflate: false,
  });
  socket.on('error', fail);
  await new Promise<void>((listening) => {
    socket.on('open', () => task.socket.greeting !== undefined && socket.send(task.socket.greeting));
    socket.on('message', (data: Buffer) => {
      const now = performance.now();
      first += 1;
      if (first === task.framesFirst) listening();
      // Read as text up to the mark: a client would parse all of it, which is not the server's time.
      const mark = Number(MARK.exec(data.toString('latin1'))?.[1]);
      const due = dueAt.get(mark);
      if (due === undefined) return;
      dueAt.delete(mark);
      if (due >= from && due < until) latencies.push(now - due);
    });
  });

  const idle: Connection[] = [];
  const waiting: number[] = [];
  let firstWaiting = 0;
  const send = (connection: Connection, due: number): void => void dueAt.set(connection.send(due), due);
  for (let index = 0; index < task.connections; index++) {
    const connection = new Connection(task, task.request, (connection, statusLine) => {
      if (!statusLine.startsWith('HTTP/1.1 2')) refused += 1;
      const next = waiting[firstWaiting];
      if (next === undefined) idle.push(connection);
      else {
        firstWaiting += 1;
        send(connection, next);
      }
    });
    idle.push(connection);
  }

  from = performance.now() + task.warmUpSeconds * 1000;
  until = from + task.seconds * 1000;
  const period = 1000 / task.rate;
  let next = performance.now();
  await new Promise<void>((done) => {
    const tick = (): void => {
      const now = performance.now();
      if (now >= until) return done();
      if (now >= from) lags.push(now - next);
      for (; next <= now; next += period) {
        const connection = idle.pop();
        if (connection === undefined) waiting.push(next);
        else send(connection, next);
      }
      setTimeout(tick, 1);
    };
    tick();
  });
  // Waits for outstanding frames, or the slowest would not count.
  for (let tries = 0; dueAt.size > 0 && tries < 400; tries++) await new Promise((resolve) => setTimeout(resolve, 50));
  return {
    frames: latencies.length,
    refused,
    missing: dueAt.size,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    lagP99: percentile(lags, 0.99),
  };
});
