/**
 * One channel with many sockets: each event is sent to all of them, after all have received the previous one. Ours is
 * the whole product, which receives the events through Redis as other processes publish them; the other sides receive
 * them directly. Rates include that path, processor time only the measured process's own.
 */
import type { Benchmark, Prepared, Row, Sample, Scale } from './benchmark.ts';
import { cpuSecondsOf } from './child-process.ts';
import { startSockets } from './load/sockets.ts';
import { prepareSockets, type SocketFixture, type SocketServer } from './socket-fixture.ts';

const BUSY = 0.9;
const PER_TICK = 10;

export const fanOutBenchmarks: readonly Benchmark[] = [
  fanOutBenchmark('fan-out-100', 100),
  fanOutBenchmark('fan-out', 1_000, { c: 0.7, ws: 1.3, socketIo: 1.4 }),
  fanOutBenchmark('fan-out-5000', 5_000),
];

interface Goals {
  readonly c: number;
  readonly ws: number;
  readonly socketIo: number;
}

function fanOutBenchmark(name: string, sockets: number, goals?: Goals): Benchmark {
  const title = `events one by one to ${sockets} sockets of a channel`;
  const row = (theirs: string, goal: number | undefined): Row => ({
    title,
    ours: 'parley',
    theirs,
    figure: 'rate',
    unit: 'frames/s',
    ...(goal !== undefined && { goal: { atLeast: goal } }),
  });
  // Varies less than the rate where other processes keep the machine busy.
  const cost = (theirs: string): Row => ({
    title: `processor time of a frame, ${sockets} sockets`,
    ours: 'parley',
    theirs,
    figure: 'cpuMicros',
    unit: 'us',
  });
  return {
    name,
    rows: [
      row('c', goals?.c),
      row('ws', goals?.ws),
      row('socket.io', goals?.socketIo),
      ...['c', 'ws', 'socket.io'].map(cost),
    ],
    async prepare() {
      const fixture = await prepareSockets();
      return {
        sides: {
          parley: (scale) => fanOut(fixture.parley(), { sockets, perTick: 1 }, scale),
          c: (scale) => fanOut(fixture.writer(), { sockets, perTick: 1 }, scale),
          ws: (scale) => fanOut(fixture.bare('ws-server'), { sockets, perTick: 1 }, scale),
          'socket.io': (scale) => fanOut(fixture.bare('socket-io-server'), { sockets, perTick: 1 }, scale),
        },
        cleanUp: () => fixture.cleanUp(),
      };
    },
  };
}

export const fanOutTickBenchmark: Benchmark = {
  name: 'fan-out-tick',
  rows: [
    {
      title: `${PER_TICK} events due in one tick to 1000 sockets`,
      ours: 'ten',
      theirs: 'one by one',
      figure: 'rate',
      unit: 'frames/s',
      goal: { atLeast: 8 },
    },
  ],
  async prepare(): Promise<Prepared> {
    const fixture: SocketFixture = await prepareSockets();
    const side = (perTick: number) => (scale: Scale) => fanOut(fixture.parley(), { sockets: 1_000, perTick }, scale);
    return { sides: { ten: side(PER_TICK), 'one by one': side(1) }, cleanUp: () => fixture.cleanUp() };
  },
};

export async function fanOut(
  starting: Promise<SocketServer>,
  { sockets, perTick }: { sockets: number; perTick: number },
  { seconds, warmUpSeconds }: Scale,
): Promise<Sample> {
  const server = await starting;
  try {
    const readers = await startSockets({
      port: server.port,
      requests: await server.requests(sockets),
      trigger: server.trigger,
      messageBytes: server.messageBytes,
    });
    try {
      await readers.open(sockets, server.framesFirst);
      await readers.fan({ seconds: warmUpSeconds, perTick });
      const before = await cpuSecondsOf(server.pid);
      const { frames, seconds: took, cpu } = await readers.fan({ seconds, perTick });
      const serverCpu = ((await cpuSecondsOf(server.pid)) - before) / took;
      const rate = frames / took;
      return {
        figures: { rate, cpuMicros: (serverCpu / rate) * 1e6, serverCpu, readersCpu: cpu },
        remarks: cpu > BUSY && serverCpu < BUSY ? ['the readers were the limit'] : [],
      };
    } finally {
      await readers.stop();
    }
  } finally {
    await server.stop();
  }
}
