/**
 * A load generator in a process of its own, thin enough for a server on the next core to be the limit: prepared
 * requests on raw keep-alive sockets, one at a time on each; it parses answers only to find their end. Closed loop:
 * each connection sends its next request when it has its answer. Open loop: requests fall due at a fixed rate,
 * whatever the server does, and latency counts from when a request fell due.
 */
import { answerTasks, cpuSecondsOf } from '../child-process.ts';
import { percentile } from '../statistics.ts';
import { Connection, type HttpRequest } from './http-connection.ts';
import { warmUp } from './warm-up.ts';

export interface HttpLoad {
  readonly host: string;
  readonly port: number;
  /** Processes whose processor time counts, with that of their child processes. */
  readonly pids: readonly number[];
  /** One connection for each; a `########` in the body becomes a number that is new in every request. */
  readonly requests: readonly HttpRequest[];
  /** At least: see {@link warmUp}. */
  readonly warmUpSeconds: number;
  readonly seconds: number;
  /** Requests per second in open loop; closed loop if absent. */
  readonly rate?: number;
}

export interface HttpLoadResult {
  readonly requests: number;
  readonly seconds: number;
  /** Answers other than 2xx, by status line. */
  readonly refused: Readonly<Record<string, number>>;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Delay of this process in sending due requests (open loop), 99th percentile in milliseconds. */
  readonly lagP99: number;
  /** Fraction of one core that this process used. */
  readonly cpu: number;
  /** The same of the server's processes, after the warm-up. */
  readonly serverCpu: number;
}

answerTasks<HttpLoad, HttpLoadResult>(async (load) => {
  let [from, until] = [Infinity, Infinity];
  const latencies: number[] = [];
  const lags: number[] = [];
  const refused: Record<string, number> = {};
  /** Connections without a request; taken from the front, so that all are used. */
  const idle: Connection[] = [];
  /** Due times of the requests that wait for a connection; taken from the front. */
  const due: number[] = [];
  let firstDue = 0;

  const onAnswer = (connection: Connection, statusLine: string): void => {
    const now = performance.now();
    if (connection.dueAt >= from && now < until) {
      latencies.push(now - connection.dueAt);
      if (!statusLine.startsWith('HTTP/1.1 2')) refused[statusLine] = (refused[statusLine] ?? 0) + 1;
    }
    if (now >= until) return;
    if (load.rate === undefined) connection.send(now);
    else if (firstDue < due.length) connection.send(due[firstDue++] ?? now);
    else idle.push(connection);
  };
  const connections = load.requests.map((request) => new Connection(load, request, onAnswer));

  if (load.rate === undefined) for (const connection of connections) connection.send(performance.now());
  else {
    idle.push(...connections);
    const period = 1000 / load.rate;
    let next = performance.now();
    const tick = (): void => {
      const now = performance.now();
      if (now >= until) return;
      if (now >= from) lags.push(now - next);
      for (; next <= now; next += period) {
        const connection = idle.shift();
        if (connection === undefined) due.push(next);
        else connection.send(next);
      }
      setTimeout(tick, 1);
    };
    tick();
  }
  await warmUp(load.pids, load.warmUpSeconds);
  const cpuBefore = process.cpuUsage();
  const serverBefore = await cpuSecondsOf(...load.pids);
  from = performance.now();
  until = from + load.seconds * 1000;
  await new Promise((resolve) => setTimeout(resolve, load.seconds * 1000));
  const serverSeconds = (await cpuSecondsOf(...load.pids)) - serverBefore;
  const used = process.cpuUsage(cpuBefore);
  return {
    requests: latencies.length,
    seconds: load.seconds,
    refused,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    lagP99: lags.length === 0 ? 0 : percentile(lags, 0.99),
    cpu: (used.user + used.system) / 1e6 / load.seconds,
    serverCpu: serverSeconds / load.seconds,
  };
});
