// `npm start` and `npm test` at the same moment on a fresh clone: one installs, the other waits for it.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { say } from './say.mjs';

export async function withSetUpLock(root, work) {
  const file = join(root, '.set-up.lock');
  for (let waiting = false; !take(file); waiting = true) {
    if (!waiting) say('another set-up is at work in this folder; waiting for it …');
    await delay(200);
  }
  try {
    await work();
  } finally {
    rmSync(file, { force: true });
  }
}

function take(file) {
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
  if (!isAlive(holder(file))) rmSync(file, { force: true });
  return false;
}

function holder(file) {
  try {
    return Number(readFileSync(file, 'utf8'));
  } catch {
    return 0;
  }
}

function isAlive(pid) {
  // An empty file is one that is being written: it counts as held, by nobody for longer than that takes.
  if (!Number.isSafeInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}
