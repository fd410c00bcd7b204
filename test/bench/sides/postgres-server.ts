/** Debian's PostgreSQL as it is installed, with its defaults (fsync and synchronous commit), on a folder of its own. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { Client } from 'pg';

import { freePort } from '#infra/private-redis/free-port.ts';
import { eventually } from '#test/support/eventually.ts';

const run = promisify(execFile);

export interface PostgresFolder {
  /** Starts the server on the folder, which keeps its data. */
  start(): Promise<PostgresServer>;
  remove(): Promise<void>;
}

export interface PostgresServer {
  readonly pid: number;
  readonly url: string;
  stop(): Promise<void>;
}

/** @returns `missing`: what to install */
export async function createPostgresFolder(): Promise<PostgresFolder | { readonly missing: string }> {
  const bin = await programs();
  if (bin === null) return { missing: 'PostgreSQL is not installed: on Debian and Ubuntu, apt-get install postgresql' };
  const folder = await mkdtemp(join(tmpdir(), 'parley-bench-postgres-'));
  const user = await serverUser();
  if (user !== null) await chown(folder, user.uid, user.gid);
  await run(join(bin, 'initdb'), ['-D', folder, '-U', 'postgres', '-E', 'UTF8', '--auth=trust'], {
    ...user,
    cwd: folder,
  });
  return {
    start: () => start(join(bin, 'postgres'), folder, user),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

/** The folder with the newest installed version. */
async function programs(): Promise<string | null> {
  const found = await run('pg_config', ['--bindir']).then(
    ({ stdout }) => stdout.trim(),
    () => null,
  );
  // Debian installs the server's programs outside the path.
  const root = '/usr/lib/postgresql';
  const versions = await readdir(root).catch(() => []);
  const folders = versions.sort((a, b) => Number(b) - Number(a)).map((version) => join(root, version, 'bin'));
  for (const bin of [...folders, ...(found === null ? [] : [found])])
    if ((await readdir(bin).catch(() => [] as string[])).includes('initdb')) return bin;
  return null;
}

/** PostgreSQL refuses to run as root: the user of Debian's package then. */
async function serverUser(): Promise<{ readonly uid: number; readonly gid: number } | null> {
  if (process.getuid?.() !== 0) return null;
  const [uid, gid] = await Promise.all(['-u', '-g'].map(async (flag) => run('id', [flag, 'postgres'])));
  return { uid: Number(uid?.stdout), gid: Number(gid?.stdout) };
}

async function start(
  program: string,
  folder: string,
  user: { readonly uid: number; readonly gid: number } | null,
): Promise<PostgresServer> {
  const port = await freePort();
  const settings = ['listen_addresses=127.0.0.1', `port=${port}`, 'unix_socket_directories=', 'log_min_messages=error'];
  const args = ['-D', folder, ...settings.flatMap((setting) => ['-c', setting])];
  const child = spawn(program, args, { ...user, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  let errors = '';
  child.stderr.on('data', (text: Buffer) => void (errors = `${errors}${text.toString()}`.slice(-2_000)));
  const exit = once(child, 'exit');
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  await eventually(async () => {
    if (child.exitCode !== null) throw new Error(`PostgreSQL ended: ${errors}`);
    const client = new Client(url);
    await client.connect();
    await client.end();
  });
  return {
    pid: child.pid ?? 0,
    url,
    async stop() {
      // Fast shutdown: it ends connections.
      child.kill('SIGINT');
      await exit;
    },
  };
}
