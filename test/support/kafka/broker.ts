/** A Kafka broker for a test, and the ways in which a broker can fail. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '#infra/private-redis/free-port.ts';
import { ensureKafkaBroker } from '#infra/set-up/kafka-broker.mjs';
import { formatStorage, startBrokerProcess } from './broker-process.ts';
import type { BrokerProcess } from './broker-process.ts';

/** For the hook that starts one: the first time its jars have to be fetched, and Java may have to be installed. */
export const KAFKA_START_MS = 600_000;

export interface TestKafka {
  /** `host:port`, each. */
  readonly brokers: readonly string[];
  /** Ends it and removes its data, unless it is somebody else's. */
  stop(): Promise<void>;
}

export interface TestKafkaProcess extends TestKafka {
  readonly pid: number;
  /** `kill -9`; resolves when the process is gone. The data stays, `restart` uses it again. */
  kill9(): Promise<void>;
  /** SIGSTOP: connections stay open, nothing answers. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
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
 * `KAFKA_TEST_VERSION` in the environment chooses another version than that of the pom.
 */
export async function startTestKafkaProcess(): Promise<TestKafkaProcess> {
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
    get pid() {
      return broker.pid;
    },
    async stop() {
      await kill9();
      await rm(folder, { recursive: true, force: true });
    },
    kill9,
    pause: () => broker.kill('SIGSTOP'),
    resume: () => broker.kill('SIGCONT'),
    async restart() {
      await kill9();
      broker = await startBrokerProcess(place);
    },
  };
}

function say(line: string): void {
  process.stderr.write(`kafka: ${line}\n`);
}
