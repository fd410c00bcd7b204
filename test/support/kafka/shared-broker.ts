/**
 * A native broker for all files of a run: it takes two seconds of processor time to start. No test kills, pauses or
 * configures it, and each uses topics of its own.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { freePort } from '#infra/private-redis/free-port.ts';

import { onFreePort } from '../on-free-port.ts';
import { oncePerRun, runFolder } from '../once-per-run.ts';
import { formatStorage, startBrokerProcess } from './broker-process.ts';
import { brokerClasses } from './java.ts';

const NAME = 'kafka';

/** @returns its address, `host:port` */
export async function sharedBroker(): Promise<string> {
  const folder = await oncePerRun(NAME, start);
  return readFile(join(folder, 'address'), 'utf8');
}

async function start(folder: string): Promise<void> {
  const classes = await brokerClasses();
  const dataDir = join(folder, 'data');
  await mkdir(dataDir);
  await formatStorage(dataDir);
  await onFreePort(async (port) => {
    const place = { dataDir, classes, port, controllerPort: await freePort() };
    // The parent of the worker processes: it ends last.
    const { pid } = await startBrokerProcess({ ...place, owner: process.ppid });
    await writeFile(join(folder, 'pid'), `${pid}`);
    await writeFile(join(folder, 'address'), `127.0.0.1:${port}`);
  });
}

/** After the last file of a run. */
export async function endSharedBroker(): Promise<void> {
  const pid = await readFile(join(runFolder(NAME), 'pid'), 'utf8').catch(() => null);
  if (pid !== null) process.kill(Number(pid), 'SIGKILL');
}
