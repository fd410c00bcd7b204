/**
 * One Kafka broker that is its own controller (KRaft), in a Java process on loopback ports. A small watcher ends it
 * when its owner dies abruptly.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface BrokerPlace {
  /** An existing folder. Data of an earlier broker in it is used again. */
  readonly dataDir: string;
  readonly port: number;
  readonly controllerPort: number;
  /** For one of several brokers, each of which is also a controller. Default: a single broker. */
  readonly member?: ClusterMember;
  /** A listener besides the plaintext one on `port`. */
  readonly listeners?: readonly Listener[];
  /** Further settings of the broker, by Kafka's names. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Flags by which `java` finds the broker's classes. */
  readonly classes: readonly string[];
  /** Id of the process that the broker ends with. Default: this one. */
  readonly owner?: number;
}

export interface ClusterMember {
  /** From 1. */
  readonly id: number;
  /** Of all members, in the order of their ids. */
  readonly controllerPorts: readonly number[];
}

export interface Listener {
  readonly protocol: 'SASL_SSL' | 'SSL';
  readonly port: number;
  /** Settings of this listener, by Kafka's names without its prefix. */
  readonly settings: Readonly<Record<string, string>>;
}

export interface BrokerProcess {
  readonly pid: number;
  /** Resolves, never rejects, when the process is gone. */
  readonly exited: Promise<void>;
  kill(signal: NodeJS.Signals): void;
}

const READY_MS = 60_000;
/** Pattern of the line that a broker logs when it serves. */
const STARTED = 'Kafka Server started';

/** Written as `kafka-storage format` would; without it, a broker refuses its folder as another broker's. */
export async function formatStorage(dataDir: string, { nodeId = 1, clusterId = newClusterId() } = {}): Promise<void> {
  const lines = ['version=1', `cluster.id=${clusterId}`, `node.id=${nodeId}`, `directory.id=${newClusterId()}`, ''];
  await writeFile(join(dataDir, 'meta.properties'), lines.join('\n'));
}

/** A UUID, as Kafka writes them. */
export function newClusterId(): string {
  return randomBytes(16).toString('base64url');
}

/** @throws Error with the last log lines, when it ends or does not serve in time */
export async function startBrokerProcess(place: BrokerPlace) {
  const { dataDir, classes, owner } = place;
  const properties = join(dataDir, '..', 'server.properties');
  await writeFile(properties, settings(place));
  const child = spawn('java', [...FLAGS, ...classes, 'kafka.Kafka', properties], {
    stdio: ['ignore', 'pipe', 'pipe'],
    // Detached, in a process group of its own: Ctrl-C in a terminal must not reach the broker, which we stop last.
    detached: true,
  });
  const exited = new Promise<void>((resolve) => {
    child.once('close', () => resolve());
    child.once('error', () => resolve());
  });
  if (child.pid === undefined) throw new Error('java could not be started');
  if (owner === undefined) endWithUs(child.pid, exited);
  else endWith(owner, child);
  await serving(child, exited);
  return { pid: child.pid, exited, kill: (signal) => void child.kill(signal) } satisfies BrokerProcess;
}

/** Small and quick to start; no test needs more. */
const FLAGS = [
  '-Xms128m',
  '-Xmx384m',
  '-XX:+UseSerialGC',
  '-XX:TieredStopAtLevel=1',
  '-Xshare:auto',
  '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
  '-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info',
];

/** Of a test broker, native or in a container. */
export const COMMON_SETTINGS = [
  // Writing to a topic that was not created is a mistake.
  ['auto.create.topics.enable', 'false'],
  ['offsets.topic.num.partitions', '1'],
  ['group.initial.rebalance.delay.ms', '0'],
  ['transaction.state.log.replication.factor', '1'],
  ['transaction.state.log.min.isr', '1'],
  ['transaction.state.log.num.partitions', '1'],
  ['num.network.threads', '2'],
  ['num.io.threads', '2'],
  // A killed broker is still registered when it comes back; the session timeout bounds the wait.
  ['broker.session.timeout.ms', '2000'],
  ['broker.heartbeat.interval.ms', '500'],
] as const;

function settings({ dataDir, port, controllerPort, member, listeners = [], settings: more = {} }: BrokerPlace): string {
  const { id, controllerPorts } = member ?? { id: 1, controllerPorts: [controllerPort] };
  const voters = controllerPorts.map((at, index) => `${index + 1}@127.0.0.1:${at}`);
  const addresses = [['PLAINTEXT', port] as const, ...listeners.map((one) => [one.protocol, one.port] as const)].map(
    ([protocol, at]) => `${protocol}://127.0.0.1:${at}`,
  );
  const replicas = controllerPorts.length;
  return [
    'process.roles=broker,controller',
    `node.id=${id}`,
    `controller.quorum.voters=${voters.join(',')}`,
    `listeners=${addresses.join(',')},CONTROLLER://127.0.0.1:${controllerPort}`,
    `advertised.listeners=${addresses.join(',')}`,
    'controller.listener.names=CONTROLLER',
    'listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL',
    'inter.broker.listener.name=PLAINTEXT',
    ...listeners.flatMap(({ protocol, settings: own }) =>
      Object.entries(own).map(([name, value]) => `listener.name.${protocol.toLowerCase()}.${name}=${value}`),
    ),
    `default.replication.factor=${replicas}`,
    // Acknowledged messages are on two of three brokers: one may die at any time.
    `min.insync.replicas=${replicas > 1 ? 2 : 1}`,
    `log.dirs=${dataDir}`,
    `offsets.topic.replication.factor=${replicas}`,
    ...COMMON_SETTINGS.map((setting) => setting.join('=')),
    ...Object.entries(more).map((setting) => setting.join('=')),
    '',
  ].join('\n');
}

async function serving(child: ChildProcess, exited: Promise<void>): Promise<void> {
  let tail = '';
  const started = new Promise<void>((resolve) => {
    const keep = (chunk: Buffer): void => {
      tail = (tail + String(chunk)).slice(-4_000);
      if (tail.includes(STARTED)) resolve();
    };
    child.stdout?.on('data', keep);
    child.stderr?.on('data', keep);
  });
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(() => late.reject(new Error(`it did not serve within ${READY_MS} ms`)), READY_MS);
  const ended = exited.then(() => {
    throw new Error('it ended at once');
  });
  try {
    await Promise.race([started, ended, late.promise]);
  } catch (error) {
    child.kill('SIGKILL');
    throw new Error(`no Kafka broker: ${String(error)}\n${tail}`, { cause: error });
  } finally {
    clearTimeout(timer);
    // Nothing handles rejections of the promises that lost the race.
    ended.catch(() => undefined);
  }
}

/** Ends process `pid` when our own process dies without a chance to do so. */
function endWithUs(pid: number, exited: Promise<void>): void {
  const watcher = spawn('/bin/sh', ['-c', 'read -r _; kill -KILL "$1"', 'parley-kafka-watcher', `${pid}`], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  watcher.on('error', () => undefined);
  watcher.stdin.on('error', () => undefined);
  watcher.unref();
  // The watcher must be gone before its broker is reaped: it must never signal a process that reuses the pid.
  void exited.then(() => watcher.kill('SIGKILL'));
}

/** Ends the broker within seconds after another process has ended. This process may end before both. */
function endWith(owner: number, broker: ChildProcess): void {
  const script = 'while kill -0 "$1" && kill -0 "$2"; do sleep 2; done; kill -KILL "$1"';
  const watched = ['parley-kafka-watcher', `${broker.pid}`, `${owner}`];
  const watcher = spawn('/bin/sh', ['-c', script, ...watched], { stdio: 'ignore', detached: true });
  for (const child of [watcher, broker]) child.unref();
}
