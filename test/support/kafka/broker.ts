/** A Kafka broker for a test, with ways to make it fail: a container or a native process. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '#infra/private-redis/free-port.ts';
import { onFreePort } from '../on-free-port.ts';
import { chooseStore } from '../stores/choice.ts';
import { type BrokerProcess, COMMON_SETTINGS, formatStorage, startBrokerProcess } from './broker-process.ts';
import { brokerClasses } from './java.ts';
import { plainKafka } from './plain-kafka.ts';
import { sharedBroker } from './shared-broker.ts';

/** For the hook that starts one: the first start may fetch the jars and install Java. */
export const KAFKA_START_MS = 600_000;

export interface TestKafka {
  /** `host:port`, each. */
  readonly brokers: readonly string[];
  /** Ends it and removes its data, unless `KAFKA_BROKERS` names it. */
  stop(): Promise<void>;
}

export interface TestKafkaProcess extends TestKafka {
  /** Of the running process; null for a container. */
  pid(): number | null;
  /** `kill -9`; resolves when the process is gone. The data stays for `restart`. */
  kill9(): Promise<void>;
  /** Freezes it: connections stay open, requests get no answer. */
  pause(): Promise<void>;
  /** Ends `pause`; does nothing if it was not paused. */
  resume(): Promise<void>;
  /** Starts it again on the same ports and data; kills it first if it runs. */
  restart(): Promise<void>;
}

/** The brokers of `KAFKA_BROKERS`, else that of the run; prints which. Tests need topic names of their own. */
export async function startTestKafka(): Promise<TestKafka> {
  const named = (process.env['KAFKA_BROKERS'] ?? '').split(',').filter((broker) => broker.trim() !== '');
  if (named.length === 0) return startSharedTestKafka();
  say(`using the brokers of KAFKA_BROKERS: ${named.join(', ')}`);
  return { brokers: named.map((broker) => broker.trim()), stop: async () => undefined };
}

/** The broker of the run, also where `KAFKA_BROKERS` is set; a new container where brokers are containers. */
export async function startSharedTestKafka(): Promise<TestKafka> {
  const choice = await chooseStore('kafka');
  if (choice.from === 'container') return startInContainer(choice.image);
  return { brokers: [await sharedBroker()], stop: async () => undefined };
}

/**
 * Always a new broker, also where `KAFKA_BROKERS` is set: tests kill and pause it. `KAFKA_TEST_VERSION` in the
 * environment selects another version than that of the pom, for a native broker.
 */
export async function startTestKafkaProcess(): Promise<TestKafkaProcess> {
  const choice = await chooseStore('kafka');
  return choice.from === 'container' ? startInContainer(choice.image) : startNative();
}

async function startInContainer(image: string): Promise<TestKafkaProcess> {
  // Loads testcontainers, which takes a second that native runs need not spend.
  const { startStoreContainer } = await import('../stores/container.ts');
  const container = await startStoreContainer({
    image,
    innerPort: 9092,
    environment: ({ host, port }) => containerSettings(`${host}:${port}`),
    probe: async ({ host, port }) => {
      const kafka = plainKafka([`${host}:${port}`], { retry: { retries: 0 } });
      const admin = kafka.admin();
      await admin.connect();
      await admin.describeCluster().finally(() => admin.disconnect());
    },
  });
  return { ...container, pid: () => null, brokers: [`${container.host}:${container.port}`] };
}

/** The settings of the native broker, by the names that the image of Apache Kafka takes. */
function containerSettings(reachedAt: string): Record<string, string> {
  return {
    KAFKA_PROCESS_ROLES: 'broker,controller',
    KAFKA_NODE_ID: '1',
    KAFKA_CONTROLLER_QUORUM_VOTERS: '1@127.0.0.1:9093',
    KAFKA_LISTENERS: 'PLAINTEXT://0.0.0.0:9092,CONTROLLER://127.0.0.1:9093',
    KAFKA_ADVERTISED_LISTENERS: `PLAINTEXT://${reachedAt}`,
    KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    KAFKA_CONTROLLER_LISTENER_NAMES: 'CONTROLLER',
    KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR: '1',
    ...Object.fromEntries(
      COMMON_SETTINGS.map(([name, value]) => [`KAFKA_${name.toUpperCase().replaceAll('.', '_')}`, value]),
    ),
  };
}

async function startNative(): Promise<TestKafkaProcess> {
  const classes = await brokerClasses();
  const folder = await mkdtemp(join(tmpdir(), 'parley-test-kafka-'));
  const dataDir = join(folder, 'data');
  await mkdir(dataDir);
  await formatStorage(dataDir);
  const started = await onFreePort(async (port) => {
    const place = { dataDir, classes, port, controllerPort: await freePort() };
    return { place, broker: await startBrokerProcess(place) };
  });
  const { place } = started;
  let broker: BrokerProcess = started.broker;
  say(
    `a broker of its own: ${process.env['KAFKA_TEST_VERSION'] ?? 'the version of test/support/kafka/pom.xml'}, port ${place.port}`,
  );
  const kill9 = async (): Promise<void> => {
    broker.kill('SIGKILL');
    await broker.exited;
  };
  return {
    brokers: [`127.0.0.1:${place.port}`],
    pid: () => broker.pid,
    async stop() {
      await kill9();
      await rm(folder, { recursive: true, force: true });
    },
    kill9,
    pause: async () => broker.kill('SIGSTOP'),
    resume: async () => broker.kill('SIGCONT'),
    async restart() {
      await kill9();
      broker = await startBrokerProcess(place);
    },
  };
}

function say(line: string): void {
  process.stderr.write(`kafka: ${line}\n`);
}
