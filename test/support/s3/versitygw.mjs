// Builds the S3 server of the tests, once for all clones of this user: versitygw, which keeps its objects in a folder.
// It is written in Go. Parley itself needs neither.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { join } from 'node:path';
import { withSetUpLock } from '../../../infra/set-up/lock.mjs';
import { say } from '../../../infra/set-up/say.mjs';
import { run } from '../../../infra/set-up/system-packages.mjs';
import { userCache } from '../user-cache.mjs';

const VERSION = 'v1.8.0';
const PACKAGE = `github.com/versity/versitygw/cmd/versitygw@${VERSION}`;

const program = join(userCache, `versitygw-${VERSION}`);

/** @returns the path of the program, or null where there is neither the program nor a Go that can build it */
export async function findS3Server() {
  if (isS3ServerBuilt()) return program;
  if (run('go', ['version']).status !== 0) return null;
  await withSetUpLock(join(userCache, 'locks/versitygw'), async () => {
    // The previous holder of the lock may have built it.
    if (!isS3ServerBuilt()) await build();
  });
  return isS3ServerBuilt() ? program : null;
}

export function isS3ServerBuilt() {
  return existsSync(program);
}

async function build() {
  say(`building ${PACKAGE}; this takes some minutes, once …`);
  const folder = mkdtempSync(join(userCache, 'build-'));
  try {
    const code = await install(folder);
    if (code === 0) renameSync(join(folder, 'versitygw'), program);
    else say(`tests with S3 are skipped: the server could not be built (go: ${code})`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function install(folder) {
  return new Promise((resolve) => {
    const env = { ...process.env, GOBIN: folder };
    const go = spawn('go', ['install', PACKAGE], { stdio: ['ignore', 'inherit', 'inherit'], env });
    // Its compilers take the time that tests leave.
    if (go.pid !== undefined) setPriority(go.pid, constants.priority.PRIORITY_LOW);
    go.once('error', (error) => resolve(error.message));
    go.once('exit', (code, signal) => resolve(code ?? signal));
  });
}
