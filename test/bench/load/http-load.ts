import type { Sample } from '../benchmark.ts';
import { startChild } from '../child-process.ts';
import type { HttpLoad, HttpLoadResult } from './http-load.process.ts';

export type { HttpRequest } from './http-connection.ts';

const BUSY = 0.9;
/** Beyond this, latencies reflect the generator more than the server. */
const LATE_MS = 3;

/**
 * Loads a server from another process, and reports when that process, not the server, was the limit.
 *
 * @param pids processes of the server
 */
export async function loadHttp(
  pids: readonly number[],
  url: URL,
  load: Omit<HttpLoad, 'host' | 'port' | 'pids'>,
): Promise<Sample> {
  const generator = startChild('load/http-load.process.ts');
  try {
    const task: HttpLoad = { ...load, pids, host: url.hostname, port: Number(url.port) };
    const result = await generator.ask<HttpLoadResult>(task);
    if (Object.keys(result.refused).length > 0) {
      throw new Error(`answers were refusals: ${JSON.stringify(result.refused)}`);
    }
    const achieved = result.requests / result.seconds;
    const { serverCpu } = result;
    return {
      figures: {
        rate: achieved,
        p50: result.p50,
        p99: result.p99,
        cpuMicros: (serverCpu / achieved) * 1e6,
        serverCpu,
        generatorCpu: result.cpu,
      },
      remarks: [
        ...(load.rate === undefined && result.cpu > BUSY && serverCpu < BUSY
          ? ['the load generator was the limit']
          : []),
        ...(result.lagP99 > LATE_MS ? [`the load generator was late by more than ${LATE_MS} ms`] : []),
        ...(load.rate !== undefined && achieved < load.rate * 0.98
          ? [`only ${Math.round(achieved)}/s of ${load.rate}/s were answered`]
          : []),
      ],
    };
  } finally {
    await generator.stop();
  }
}
