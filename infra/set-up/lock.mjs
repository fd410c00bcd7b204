// A lock between set-ups of one clone: of `npm start` and `npm test` at the same time, one installs and the other waits.
//
// The holders are numbered: the target of the symbolic link `.set-up/<n>` is the process id of a holder. A holder
// releases the lock by creating the next number, with the target `released`. Only the highest number counts. When the
// lock is released, or its process has died, the first process that creates the next number holds the lock. No link is
// removed to free the lock: of two processes that both find it stale, the slower one would remove the link that the
// faster one has just created.
import { mkdirSync, readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { say } from './say.mjs';

const RELEASED = 'released';

export async function withSetUpLock(root, work, { everyMs = 200 } = {}) {
  const folder = join(root, '.set-up');
  mkdirSync(folder, { recursive: true });
  let turn = take(folder);
  if (turn === undefined) say('another set-up runs in this folder; waiting for it … (if none does: remove .set-up)');
  while (turn === undefined) {
    await delay(everyMs);
    turn = take(folder);
  }
  try {
    await work();
  } finally {
    create(folder, turn + 1, RELEASED);
    removeBefore(folder, turn + 1);
  }
}

/** @returns the number under which this process holds the lock, or undefined while another process holds it */
function take(folder) {
  const last = lastTurn(folder);
  if (isAlive(holder(folder, last))) return undefined;
  const turn = last + 1;
  if (!create(folder, turn, String(process.pid))) return undefined;
  // Earlier numbers are removed, so this one may have been used and removed already.
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

/** Atomic, unlike the creation and the writing of a file. */
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
    // No link yet, or later ones exist: then creating the next one fails.
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
