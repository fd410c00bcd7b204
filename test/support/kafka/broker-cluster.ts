/** Three Kafka brokers that each hold a copy of everything. One of them may die. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '#infra/private-redis/free-port.ts';
import { onFreePort } from '../on-free-port.ts';
import { brokerClasses } from './java.ts';
import { type BrokerPlace, formatStorage, newClusterId, startBrokerProcess } from './broker-process.ts';

export interface TestKafkaCluster {
  /** `host:port` of brokers 1, 2 and 3. */
  readonly brokers: readonly string[];
  /**
   * `kill -9`; resolves when the process is gone.
   * @param id from 1
   */
  kill9(id: number): Promise<void>;
  /** Starts a killed broker again, on the same ports and data. */
  restart(id: number): Promise<void>;
  stop(): Promise<void>;
}

const MEMBERS = 3;

/** Always starts new brokers. */
export const startTestKafkaCluster = (): Promise<TestKafkaCluster> => onFreePort(startOn);

async function startOn(firstPort: number): Promise<TestKafkaCluster> {
  const classes = await brokerClasses();
  const folder = await mkdtemp(join(tmpdir(), 'parley-test-kafka-cluster-'));
  const places = await placesIn(folder, classes, firstPort);
  // No broker serves before a majority is up.
  const started = await Promise.allSettled(places.map(startBrokerProcess));
  const running = new Map(started.flatMap((one, index) => (one.status === 'fulfilled' ? [[index, one.value]] : [])));
  const kill9 = async (index: number): Promise<void> => {
    running.get(index)?.kill('SIGKILL');
    await running.get(index)?.exited;
    running.delete(index);
  };
  const stop = async (): Promise<void> => {
    await Promise.all([...running.keys()].map(kill9));
    await rm(folder, { recursive: true, force: true });
  };
  const failed = started.find((one) => one.status === 'rejected');
  if (failed !== undefined) {
    await stop();
    throw failed.reason;
  }
  return {
    brokers: places.map(({ port }) => `127.0.0.1:${port}`),
    kill9: (id) => kill9(id - 1),
    async restart(id) {
      const place = places[id - 1];
      if (place === undefined) throw new RangeError(`no broker ${id}`);
      running.set(id - 1, await startBrokerProcess(place));
    },
    stop,
  };
}

async function placesIn(
  folder: string,
  classes: readonly string[],
  firstPort: number,
): Promise<readonly BrokerPlace[]> {
  const clusterId = newClusterId();
  const controllerPorts = [firstPort];
  while (controllerPorts.length < MEMBERS) controllerPorts.push(await freePort());
  const places: BrokerPlace[] = [];
  for (const [index, controllerPort] of controllerPorts.entries()) {
    const id = index + 1;
    const dataDir = join(folder, `broker-${id}`, 'data');
    await mkdir(dataDir, { recursive: true });
    await formatStorage(dataDir, { nodeId: id, clusterId });
    places.push({ dataDir, classes, port: await freePort(), controllerPort, member: { id, controllerPorts } });
  }
  return places;
}
