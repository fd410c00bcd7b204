/**
 * The fan-out of servers that do nothing else, from Debian: `nats-server` over websockets, and `nchan`. The clients
 * publish the text of the frame to them, as they publish it to Redis for ours. They add what their protocols add: to each
 * event, `nats-server` about 15 bytes.
 */
import type { Benchmark, Row, Sample, Scale, Side } from './benchmark.ts';
import { fanOut } from './fan-out.benchmark.ts';
import { unpackPackages } from './sides/debian-package.ts';
import { DEBIAN_SERVERS, type DebianServer } from './sides/debian-servers.ts';
import { prepareSockets, type SocketServer } from './socket-fixture.ts';

const SOCKETS = 1_000;
const TEN = 10;
const NAMES = ['nats-server', 'nchan'] as const;

const ten = (name: string): string => `${name}, ten`;

const rowsAgainst = (name: string): Row[] => {
  const one = { ours: 'parley', theirs: name };
  const rate = { figure: 'rate', unit: 'frames/s' };
  const cost = { figure: 'cpuMicros', unit: 'us' };
  const both = { ours: ten('parley'), theirs: ten(name) };
  return [
    { title: `${TEN} events due in one tick to ${SOCKETS} sockets`, ...both, ...rate, goal: { atLeast: 1 } },
    { title: `processor time of a frame, ${TEN} events in one tick`, ...both, ...cost },
    { title: `events one by one to ${SOCKETS} sockets`, ...one, ...rate },
    { title: `processor time of a frame, one by one`, ...one, ...cost },
  ];
};

const unpack = ({ packages, writesTo }: DebianServer) => unpackPackages(packages, writesTo);

export const fanOutServersBenchmark: Benchmark = {
  name: 'fan-out-servers',
  rows: NAMES.flatMap(rowsAgainst),
  async prepare() {
    const fixture = await prepareSockets();
    const unpacked = await Promise.all(NAMES.map((name) => unpack(DEBIAN_SERVERS[name])));
    const sidesOf = (name: string, start: () => Promise<SocketServer> | { readonly missing: string }) => {
      const side =
        (perTick: number) =>
        async (scale: Scale): Promise<Sample> => {
          const server = start();
          if ('missing' in server) return { figures: {}, remarks: [`skipped: ${server.missing}`] };
          return fanOut(server, { sockets: SOCKETS, perTick }, scale);
        };
      return [
        [name, side(1)],
        [ten(name), side(TEN)],
      ] satisfies [string, Side][];
    };
    const theirs = NAMES.flatMap((name, index) => {
      const packages = unpacked[index] ?? { missing: name };
      return sidesOf(name, () =>
        'missing' in packages ? packages : DEBIAN_SERVERS[name].start(packages.folder, fixture.frame),
      );
    });
    return {
      sides: Object.fromEntries([...sidesOf('parley', () => fixture.parley()), ...theirs]),
      async cleanUp() {
        await Promise.all([fixture.cleanUp(), ...unpacked.map((one) => ('remove' in one ? one.remove() : undefined))]);
      },
    };
  },
};
