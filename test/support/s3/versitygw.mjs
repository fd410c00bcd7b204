// Builds the S3 server of the tests, once for all clones of this user: versitygw, which keeps its objects in a folder.
// It is written in Go. Parley itself needs neither.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { say } from '../../../infra/set-up/say.mjs';
import { run } from '../../../infra/set-up/system-packages.mjs';

const VERSION = 'v1.8.0';
const PACKAGE = `github.com/versity/versitygw/cmd/versitygw@${VERSION}`;

/** @returns the path of the program, or null where there is neither the program nor a Go that can build it */
export async function findS3Server() {
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'parley');
  const program = join(cache, `versitygw-${VERSION}`);
  if (existsSync(program)) return program;
  if (run('go', ['version']).status !== 0) return null;
  say(`building ${PACKAGE}; this takes some minutes, once …`);
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'build-'));
  try {
    const code = await build(folder);
    if (code === 0) renameSync(join(folder, 'versitygw'), program);
    else say(`tests with S3 are skipped: the server could not be built (go: ${code})`);
    return code === 0 ? program : null;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function build(folder) {
  return new Promise((resolve) => {
    const env = { ...process.env, GOBIN: folder };
    const go = spawn('go', ['install', PACKAGE], { stdio: ['ignore', 'inherit', 'inherit'], env });
    go.once('error', (error) => resolve(error.message));
    go.once('exit', (code, signal) => resolve(code ?? signal));
  });
}
