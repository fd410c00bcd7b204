/** An S3 server for one test file, with ways to make it fail. Its port and data survive restarts. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { freePort } from '#infra/private-redis/free-port.ts';
import type { S3Options } from '#libs/platform/blobs/index.ts';
import { eventually } from '#test/support/eventually.ts';

export interface S3Server {
  /** Of an empty bucket. */
  readonly options: S3Options;
  /** The objects of the bucket are the files in this folder. */
  readonly folder: string;
  /** `kill -9`; resolves when the process has ended. `start` uses the same data. */
  kill9(): Promise<void>;
  /** Freezes it: connections stay open, requests get no answer. */
  pause(): void;
  resume(): void;
  /** Resolves when it answers. */
  start(): Promise<void>;
  /** Ends it and removes its data. */
  stop(): Promise<void>;
}

const BUCKET = 'files';
const START_MS = 60_000;

/** @param program see `findS3Server` */
export async function startS3Server(program: string): Promise<S3Server> {
  const root = await mkdtemp(join(tmpdir(), 'parley-test-s3-'));
  const folder = join(root, BUCKET);
  await mkdir(folder);
  const credentials = { accessKeyId: 'parley', secretAccessKey: randomBytes(12).toString('hex') };
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  let child: ChildProcess;

  async function start(): Promise<void> {
    const args = ['--port', `127.0.0.1:${port}`, '--keep-alive', '--quiet', 'posix', root];
    const env = { ROOT_ACCESS_KEY: credentials.accessKeyId, ROOT_SECRET_KEY: credentials.secretAccessKey };
    child = spawn(program, args, { env, stdio: 'ignore' });
    await eventually(async () => (await fetch(endpoint)).status > 0, { timeoutMs: START_MS });
  }
  async function kill9(): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  await start();
  return {
    options: { bucket: BUCKET, prefix: 'parley/', endpoint, region: 'us-east-1', isPathStyle: true, credentials },
    folder,
    kill9,
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    start,
    async stop() {
      await kill9();
      await rm(root, { recursive: true, force: true });
    },
  };
}
