/** Connections up to their first frame: with a ticket that is redeemed, against a bare handshake. */
import type { Benchmark, Sample, Scale } from './benchmark.ts';
import { cpuSecondsOf } from './child-process.ts';
import { startSockets } from './load/sockets.ts';
import { prepareSockets, type SocketServer } from './socket-fixture.ts';

const AT_A_TIME = 64;
/** More than a server opens in a second here; tickets are issued before, and are valid for a minute. */
const MOST_PER_SECOND = { parley: 9_500, ws: 16_000 };

export const handshakeBenchmark: Benchmark = {
  name: 'handshake',
  rows: [
    {
      title: 'ticket redemption and upgrade, up to the first frame',
      ours: 'parley',
      theirs: 'ws',
      figure: 'rate',
      unit: '1/s',
      goal: { atLeast: 0.7 },
    },
    // Varies less than the rate where other processes keep the machine busy.
    { title: 'processor time of a handshake', ours: 'parley', theirs: 'ws', figure: 'cpuMicros', unit: 'us' },
  ],
  async prepare() {
    const fixture = await prepareSockets();
    return {
      sides: {
        parley: (scale) => shakeHands(fixture.parley(), MOST_PER_SECOND.parley, scale),
        ws: (scale) => shakeHands(fixture.bare('ws-server'), MOST_PER_SECOND.ws, scale),
      },
      cleanUp: () => fixture.cleanUp(),
    };
  },
};

async function shakeHands(starting: Promise<SocketServer>, mostPerSecond: number, scale: Scale): Promise<Sample> {
  const server = await starting;
  // Issuing tickets takes time, so the measurement is shorter than others. The warm-up is longer: a handshake runs
  // through more code than anything else here, and the first ten thousand cost twice as much.
  const [warmUpSeconds, seconds] = [4, Math.min(scale.seconds, 3)];
  try {
    const [first, ...others] = await server.requests(1 + mostPerSecond * (warmUpSeconds + seconds));
    if (first === undefined) throw new TypeError('there is a first one');
    // Clients that leave with the first frame send nothing.
    const silent = others.map(({ greeting: _greeting, ...request }) => request);
    const sockets = await startSockets({ port: server.port, requests: [first, ...silent] });
    try {
      // One that stays, so that the channel is subscribed to all the time.
      await sockets.open(1, server.framesFirst);
      await sockets.handshakes({ warmUpSeconds: 0, seconds: warmUpSeconds, atATime: AT_A_TIME });
      const before = await cpuSecondsOf(server.pid);
      const {
        handshakes,
        seconds: took,
        cpu,
      } = await sockets.handshakes({
        warmUpSeconds: 0,
        seconds,
        atATime: AT_A_TIME,
      });
      const serverCpu = ((await cpuSecondsOf(server.pid)) - before) / took;
      const rate = handshakes / took;
      return {
        figures: { rate, cpuMicros: (serverCpu / rate) * 1e6, serverCpu, clientsCpu: cpu },
        remarks: [
          ...(cpu > 0.9 && serverCpu < 0.9 ? ['the clients were the limit'] : []),
          ...(took < seconds * 0.9 ? ['the tickets were used up early'] : []),
        ],
      };
    } finally {
      await sockets.stop();
    }
  } finally {
    await server.stop();
  }
}
