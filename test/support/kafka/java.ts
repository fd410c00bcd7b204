/**
 * How Java finds the classes of a broker: in jars that Maven fetched, and in an archive of the classes that a broker
 * loads. Java maps the archive into memory instead of parsing and verifying them, which takes a start from three seconds
 * of processor time to one and a half.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { withSetUpLock } from '#infra/set-up/lock.mjs';
import { freePort } from '#infra/private-redis/free-port.ts';
import { onFreePort } from '../on-free-port.ts';
import { formatStorage, startBrokerProcess } from './broker-process.ts';
import { ensureKafkaBroker } from './kafka-broker.mjs';
import { plainKafka } from './plain-kafka.ts';

const run = promisify(execFile);

let flags: Promise<readonly string[]> | undefined;

/**
 * Flags of `java`, for the version of the pom or that of `KAFKA_TEST_VERSION`. The first call on a machine fetches the
 * jars and makes the archive.
 */
export const brokerClasses = (): Promise<readonly string[]> => (flags ??= findClasses());

async function findClasses(): Promise<readonly string[]> {
  const version = process.env['KAFKA_TEST_VERSION'];
  const classPath = await ensureKafkaBroker(join(import.meta.dirname, '../../..'), { version });
  const jars = dirname(classPath);
  // Java refuses the archive of another Java.
  const { stderr } = await run('java', ['-version']);
  const archive = `${jars}-${createHash('sha256').update(stderr).digest('hex').slice(0, 12)}.jsa`;
  if (!existsSync(archive)) {
    await withSetUpLock(join(dirname(jars), 'locks', basename(archive)), async () => {
      // The previous holder of the lock may have done it.
      if (!existsSync(archive)) await makeArchive(archive, classPath);
    });
  }
  return ['-cp', classPath, `-XX:SharedArchiveFile=${archive}`];
}

/** Lets a broker serve a client once, and write the classes that it has loaded as it ends. */
async function makeArchive(archive: string, classPath: string): Promise<void> {
  // Beside the archive: an archive of the final name must be complete.
  const folder = await mkdtemp(join(dirname(archive), 'classes-'));
  const unfinished = join(folder, 'classes.jsa');
  try {
    const dataDir = join(folder, 'data');
    await mkdir(dataDir);
    await formatStorage(dataDir);
    await onFreePort(async (port) => {
      const classes = ['-cp', classPath, `-XX:ArchiveClassesAtExit=${unfinished}`];
      const broker = await startBrokerProcess({ dataDir, classes, port, controllerPort: await freePort() });
      await useOnce(`127.0.0.1:${port}`).finally(() => broker.kill('SIGTERM'));
      await broker.exited;
    });
    // Fails for an archive whose writing was cut off; a broker would crash with it.
    await run('java', ['-cp', classPath, '-Xshare:on', `-XX:SharedArchiveFile=${unfinished}`, '-version'], {
      cwd: folder,
    });
    await rename(unfinished, archive);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Sends the kinds of requests that tests send. */
async function useOnce(broker: string): Promise<void> {
  const kafka = plainKafka([broker]);
  const topic = 'any';
  const admin = kafka.admin();
  const producer = kafka.producer({ transactionalId: topic, idempotent: true, maxInFlightRequests: 1 });
  const consumer = kafka.consumer({ groupId: topic });
  const clients = [admin, producer, consumer];
  try {
    await Promise.all(clients.map((client) => client.connect()));
    await admin.createTopics({ topics: [{ topic, numPartitions: 1 }], waitForLeaders: true });
    const transaction = await producer.transaction();
    await transaction.send({ topic, messages: [{ value: 'any' }] });
    await transaction.commit();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    const consumed = Promise.withResolvers<void>();
    await consumer.run({ eachMessage: async () => consumed.resolve() });
    await consumed.promise;
    await admin.describeGroups([topic]);
    await admin.fetchOffsets({ groupId: topic });
    await consumer.stop();
    await admin.deleteTopics({ topics: [topic] });
  } finally {
    await Promise.all(clients.map((client) => client.disconnect()));
  }
}
