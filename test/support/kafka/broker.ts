/** A Kafka broker for a test, and the ways in which a broker can fail: a container, or a native process. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '#infra/private-redis/free-port.ts';
import { ensureKafkaBroker } from './kafka-broker.mjs';
import { chooseStore } from '../stores/choice.ts';
import { COMMON_SETTINGS, formatStorage, startBrokerProcess } from './broker-process.ts';
import type { BrokerProcess } from './broker-process.ts';
import { plainKafka } from './plain-kafka.ts';

/** For the hook that starts one: the first time its jars have to be fetched, and Java may have to be installed. */
export const KAFKA_START_MS = 600_000;

export interface TestKafka {
  /** `host:port`, each. */
  readonly brokers: readonly string[];
  /** Ends it and removes its data, unless it is somebody else's. */
  stop(): Promise<void>;
}

export interface TestKafkaProcess extends TestKafka {
  /** Of the process that runs now; null for one in a container. */
  pid(): number | null;
  /** `kill -9`; resolves when the process is gone. The data stays, `restart` uses it again. */
  kill9(): Promise<void>;
  /** It is frozen: connections stay open, nothing answers. */
  pause(): Promise<void>;
  /** Lets it go on; nothing if it was not paused. */
  resume(): Promise<void>;
  /** Starts it again on the same ports and data, after it was killed, or after killing it. */
  restart(): Promise<void>;
}

/** The brokers that `KAFKA_BROKERS` names, else one of its own; says which. Topics need names of the test's own. */
export async function startTestKafka(): Promise<TestKafka> {
  const named = (process.env['KAFKA_BROKERS'] ?? '').split(',').filter((broker) => broker.trim() !== '');
  if (named.length === 0) return startTestKafkaProcess();
  say(`using the brokers of KAFKA_BROKERS: ${named.join(', ')}`);
  return { brokers: named.map((broker) => broker.trim()), stop: async () => undefined };
}

/**
 * One of its own, whatever `KAFKA_BROKERS` says: it is killed and paused.
 *
 * `KAFKA_TEST_VERSION` in the environment chooses another version than that of the pom, for a native one.
 */
export async function startTestKafkaProcess(): Promise<TestKafkaProcess> {
  const choice = await chooseStore('kafka');
  return choice.from === 'container' ? startInContainer(choice.image) : startNative();
}

async function startInContainer(image: string): Promise<TestKafkaProcess> {
  // It takes a second to load, and native runs do without.
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

/** As the native one is set, by the names that the image of Apache Kafka takes. */
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
  const version = process.env['KAFKA_TEST_VERSION'];
  const classPath = await ensureKafkaBroker(join(import.meta.dirname, '../../..'), { version });
  const folder = await mkdtemp(join(tmpdir(), 'parley-test-kafka-'));
  const dataDir = join(folder, 'data');
  await mkdir(dataDir);
  await formatStorage(dataDir);
  const place = { dataDir, classPath, port: await freePort(), controllerPort: await freePort() };
  let broker: BrokerProcess = await startBrokerProcess(place);
  say(`a broker of its own: ${version ?? 'the version of test/support/kafka/pom.xml'}, port ${place.port}`);
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
