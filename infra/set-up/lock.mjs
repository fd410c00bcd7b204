// `npm start` and `npm test` at the same moment on a fresh clone: one installs, the others wait for it.
//
// The turns are numbered: `.set-up/<n>` is a symbolic link that names the process whose turn it is, or nobody.
// Only the last one counts, and the next one is made, by whoever is first, when that is over: its process has
// said so, or is gone. No file is ever removed to free the lock, since two processes that both find it stale
// could not do that: the slower one would remove what the faster one has just taken.
import { mkdirSync, readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { say } from './say.mjs';

const NOBODY = 'nobody';

export async function withSetUpLock(root, work, { everyMs = 200 } = {}) {
  const folder = join(root, '.set-up');
  mkdirSync(folder, { recursive: true });
  let turn = take(folder);
  if (turn === undefined) say('another set-up is at work in this folder; waiting for it … (none is? remove .set-up)');
  while (turn === undefined) {
    await delay(everyMs);
    turn = take(folder);
  }
  try {
    await work();
  } finally {
    create(folder, turn + 1, NOBODY);
    removeBefore(folder, turn + 1);
  }
}

/** @returns the number of the turn that is now this process', or undefined while it is somebody else's */
function take(folder) {
  const last = lastTurn(folder);
  if (isAlive(holder(folder, last))) return undefined;
  const turn = last + 1;
  if (!create(folder, turn, String(process.pid))) return undefined;
  // The last turn is never removed, earlier ones are: this number may have been used up long ago.
  if (lastTurn(folder) > turn) {
    rmSync(join(folder, String(turn)), { force: true });
    return undefined;
  }
  removeBefore(folder, turn);
  return turn;
}

function turns(folder) {
  return readdirSync(folder).map(Number).filter(Number.isSafeInteger);
}

function lastTurn(folder) {
  return Math.max(0, ...turns(folder));
}

/** With its content in one step, unlike a file; only one process can make the same one. */
function create(folder, turn, content) {
  try {
    symlinkSync(content, join(folder, String(turn)));
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    return false;
  }
}

function removeBefore(folder, turn) {
  for (const earlier of turns(folder).filter((one) => one < turn))
    rmSync(join(folder, String(earlier)), { force: true });
}

function holder(folder, turn) {
  try {
    return Number(readlinkSync(join(folder, String(turn))));
  } catch {
    // There was no turn yet, or there are later ones by now: then the next one cannot be made.
    return Number.NaN;
  }
}

function isAlive(pid) {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}
