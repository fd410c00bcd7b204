import type { Sample } from '../benchmark.ts';
import { cpuSecondsOf, startChild } from '../child-process.ts';
import type { HttpLoad, HttpLoadResult } from './http-load.process.ts';

export type { HttpRequest } from './http-connection.ts';

const BUSY = 0.9;
/** Beyond this, latencies reflect the generator more than the server. */
const LATE_MS = 3;

/** Loads a server from another process, and reports when that process, not the server, was the limit. */
export async function loadHttp(serverPid: number, url: URL, load: Omit<HttpLoad, 'host' | 'port'>): Promise<Sample> {
  const generator = startChild('load/http-load.process.ts');
  try {
    const asked = generator.ask<HttpLoadResult>({ ...load, host: url.hostname, port: Number(url.port) });
    await new Promise((resolve) => setTimeout(resolve, load.warmUpSeconds * 1000));
    const before = await cpuSecondsOf(serverPid);
    const started = performance.now();
    const result = await asked;
    const server =
      (await cpuSecondsOf(serverPid).then((after) => after - before)) / ((performance.now() - started) / 1000);
    if (Object.keys(result.refused).length > 0) {
      throw new Error(`answers were refusals: ${JSON.stringify(result.refused)}`);
    }
    const achieved = result.requests / result.seconds;
    return {
      figures: {
        rate: achieved,
        p50: result.p50,
        p99: result.p99,
        cpuMicros: (server / achieved) * 1e6,
        serverCpu: server,
        generatorCpu: result.cpu,
      },
      remarks: [
        ...(load.rate === undefined && result.cpu > BUSY && server < BUSY ? ['the load generator was the limit'] : []),
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
