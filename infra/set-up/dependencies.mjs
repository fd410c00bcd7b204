// Installs the packages of package-lock.json, unless they are installed already.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { withSetUpLock } from './lock.mjs';
import { say, SetUpError } from './say.mjs';

const QUIET = ['--no-audit', '--no-fund', '--loglevel=error'];

/**
 * @param development also those of tests, checks and benchmarks, which are two thirds of all
 * @returns the path of the pinned Node
 */
export async function ensureDependencies(root, { development }) {
  if (!upToDate(root, development)) {
    await withSetUpLock(root, async () => {
      // The previous holder of the lock may have installed them.
      if (!upToDate(root, development)) await install(root, development);
    });
  }
  return pinnedNode(root);
}

function upToDate(root, development) {
  const lock = readJson(join(root, 'package-lock.json'));
  return existsSync(nodeIn(root)) && installedIsLocked(lock, installedPackages(root), { development });
}

function installedPackages(root) {
  // npm writes this file last: after an interrupted installation it is missing.
  return readJson(join(root, 'node_modules/.package-lock.json'));
}

/**
 * Whether every package of the lock file is installed in its version. Optional ones (of other platforms) may be absent,
 * and those that only development needs, unless it is asked for.
 */
export function installedIsLocked(lock, installed, { development }) {
  if (lock?.packages === undefined)
    throw new SetUpError('package-lock.json is missing or damaged: restore it (git checkout package-lock.json)');
  if (installed?.packages === undefined) return false;
  return Object.entries(lock.packages).every(([path, wanted]) => {
    if (path === '') return true;
    const found = installed.packages[path];
    if (found === undefined) {
      return wanted.optional === true || wanted.devOptional === true || (!development && wanted.dev === true);
    }
    const sameContent = wanted.integrity === undefined || found.integrity === wanted.integrity;
    return found.version === wanted.version && sameContent;
  });
}

async function install(root, development) {
  // Both are said, because NODE_ENV and the configuration of npm have an opinion, too.
  const which = development ? '--include=dev' : '--omit=dev';
  const add = ['install', '--no-save', which, ...QUIET];
  say('installing dependencies; the first time this takes up to a minute …');
  // `ci` removes the installed packages first. A Parley that runs from this folder may still load some of them.
  const adds = development && upToDate(root, false);
  let code = await runNpm(root, adds ? add : ['ci', which, ...QUIET]);
  if (code !== 0 && !adds) {
    // If the registry lacks an optional package of another platform, `ci` fails although this platform needs none.
    say('npm ci failed; trying npm install, which takes the same versions …');
    code = await runNpm(root, add);
  }
  if (code !== 0) {
    throw new SetUpError(
      `the dependencies could not be installed (npm: ${code}); it needs npm and, once, its registry`,
    );
  }
  if (!existsSync(nodeIn(root))) fetchNode(root);
}

/** Where install scripts are disabled, that of the pinned Node, which fetches its binary, has not run. */
function fetchNode(root) {
  say('fetching the pinned Node, whose install script did not run …');
  const folder = join(root, 'node_modules/node');
  spawnSync('node', ['installArchSpecificPackage.js'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: npmEnvironment(root),
  });
}

function runNpm(root, args) {
  return new Promise((resolve) => {
    const npm = spawn('npm', args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'], env: npmEnvironment(root) });
    npm.once('error', () => resolve('npm was not found'));
    npm.once('exit', (code, signal) => resolve(code ?? signal));
  });
}

/** npm must not run on the Node in node_modules, which it replaces. */
function npmEnvironment(root) {
  const own = join(root, 'node_modules');
  const path = (process.env.PATH ?? '').split(delimiter).filter((folder) => !folder.startsWith(own));
  return { ...process.env, PATH: path.join(delimiter) };
}

/** The pinned Node; if it does not run on this system (musl), the current one, provided that it is new enough. */
function pinnedNode(root) {
  const wanted = readJson(join(root, 'node_modules/node/package.json'))?.version ?? '24.0.0';
  const pinned = nodeIn(root);
  const { status } = spawnSync(pinned, ['--version'], { stdio: 'ignore' });
  if (status === 0) return pinned;
  if (Number(process.versions.node.split('.')[0]) >= Number(wanted.split('.')[0])) return process.execPath;
  throw new SetUpError(
    `the pinned Node ${wanted} (${pinned}) does not run on this system, and its own Node is ${process.versions.node}.\n` +
      `Install Node ${wanted.split('.')[0]} or newer, and start again.`,
  );
}

function nodeIn(root) {
  return join(root, 'node_modules/node/bin/node');
}

function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}
