/** Memory that an idle connection costs its server: with thousands of them, less that without. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { MEMORY_REPORT_FLAGS as flags, memoryOf } from '#test/support/memory.ts';

import type { Benchmark, Row, Sample, Scale } from './benchmark.ts';
import { startSockets } from './load/sockets.ts';
import { prepareSockets, type SocketServer } from './socket-fixture.ts';

const CONNECTIONS = 4_000;
/** Allocations that do not depend on the count of sockets happen before the measurement. */
const FIRST = 200;

const row = (theirs: string, goal: number): Row => ({
  title: 'memory per idle connection: heap and buffers after collection',
  ours: 'parley',
  theirs,
  figure: 'heap',
  unit: 'KiB',
  goal: { atMost: goal },
});

export const memoryBenchmark: Benchmark = {
  name: 'socket-memory',
  // The resident memory is reported, but not compared: issuing tickets leaves free memory that sockets then use.
  rows: [row('ws', 1.3), row('socket.io', 0.5)],
  async prepare() {
    const folder = await mkdtemp(join(tmpdir(), 'parley-bench-memory-'));
    const report = join(folder, 'report.json');
    // The servers inherit it from this process.
    process.env['MEMORY_REPORT'] = report;
    const fixture = await prepareSockets();
    return {
      sides: {
        parley: (scale) => measure(fixture.parley(flags), report, scale),
        ws: (scale) => measure(fixture.bare('ws-server', flags), report, scale),
        'socket.io': (scale) => measure(fixture.bare('socket-io-server', flags), report, scale),
      },
      async cleanUp() {
        await fixture.cleanUp();
        await rm(folder, { recursive: true, force: true });
      },
    };
  },
};

async function measure(starting: Promise<SocketServer>, report: string, { amount }: Scale): Promise<Sample> {
  const server = await starting;
  const count = Math.round(CONNECTIONS * Math.max(amount, 0.5));
  try {
    const sockets = await startSockets({ port: server.port, requests: await server.requests(FIRST + count) });
    try {
      await sockets.open(FIRST, server.framesFirst);
      const before = await memoryOf(server.pid, report);
      await sockets.open(count, server.framesFirst);
      const after = await memoryOf(server.pid, report);
      const each = (figure: 'heap' | 'rss') => (after[figure] - before[figure]) / count / 1024;
      return { figures: { heap: each('heap'), rss: each('rss') } };
    } finally {
      await sockets.stop();
    }
  } finally {
    await server.stop();
  }
}
