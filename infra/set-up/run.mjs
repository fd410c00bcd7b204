// Runs a program on the pinned Node in place of this process: same terminal, same signals, same exit code. (Node 20
// has no exec.) If this process is killed, the program notices and stops by itself.
//
// As a command: node infra/set-up/run.mjs [--redis | --production] program [arguments]. It installs the packages of
// development, too, except for a program of production.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { ensureDependencies } from './dependencies.mjs';
import { ensureRedisServer } from './redis-server.mjs';
import { say, tellErrors } from './say.mjs';

export const root = join(dirname(fileURLToPath(import.meta.url)), '../..');

/**
 * Installs missing dependencies; quick if there are none.
 *
 * @param development whether tests, checks or benchmarks run, whose packages a start does not need
 * @returns the path of the Node that runs Parley
 */
export async function setUp({ redis, development = true }) {
  const installing = ensureDependencies(root, { development });
  try {
    // npm runs meanwhile: its packages arrive while those of the system are installed.
    if (redis) ensureRedisServer();
  } finally {
    // Also if there is no Redis: another set-up must not find npm at work.
    await installing;
  }
  return installing;
}

/** Starts the program; this process ends when the program ends. */
export function become(node, args) {
  const program = spawn(node, args, {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: {
      // Half of a start is the compilation of unchanged files. Threads and programs that this one starts use it, too.
      NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/compiled'),
      ...process.env,
      // `node` on the program's PATH is the pinned one.
      PATH: [join(root, 'node_modules/.bin'), process.env.PATH].join(delimiter),
      PARLEY_SUPERVISED: '1',
    },
  });
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  for (const signal of signals) process.on(signal, () => program.kill(signal));
  const watch = stopWithNpm(() => program.kill('SIGTERM'));
  program.once('exit', (code, signal) => {
    clearInterval(watch);
    if (signal === null) process.exit(code ?? 1);
    // The start checks the structure of the log, but not every page.
    if (signal === 'SIGBUS' || signal === 'SIGSEGV') {
      say(`ended by ${signal}. A damaged log can cause this: see "Backup and restore" in docs/operations.md`);
    }
    for (const name of signals) process.removeAllListeners(name);
    process.kill(process.pid, signal);
    // In case the signal does not end this process.
    setTimeout(() => process.exit(1), 1_000);
  });
}

/** Stops the program when npm, or the shell between npm and this process, is killed: then an ancestor changes. */
function stopWithNpm(stop) {
  if (process.env.npm_lifecycle_event === undefined) return undefined;
  const ancestors = () => `${process.ppid} ${parentOf(process.ppid)}`;
  const before = ancestors();
  return setInterval(() => ancestors() !== before && stop(), 500);
}

/** Only on Linux; elsewhere only the parent is watched. */
function parentOf(pid) {
  try {
    return /^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  } catch {
    return undefined;
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const args = process.argv.slice(2);
  const option = args[0]?.startsWith('--') ? args.shift() : undefined;
  const [program, ...rest] = args;
  const needs = { redis: option === '--redis', development: option !== '--production' };
  await tellErrors(async () => become(await setUp(needs), [join(root, program), ...rest]));
}
