/** Processes that set up the same folder at once, some of which are killed meanwhile. */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { withSetUpLock } from '#infra/set-up/lock.mjs';

const holder = join(import.meta.dirname, 'hold-set-up-lock.process.ts');

let root: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'parley-test-lock-'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

/** @returns its standard output */
function hold(times: number, dies: boolean): Promise<string> {
  return new Promise((resolve) => {
    execFile(process.execPath, [holder, root, String(times), dies ? 'dies' : 'leaves'], (_, said) => resolve(said));
  });
}

describe('the lock of the set-up', () => {
  it('is held by one process at a time, in turn, though holders are killed while others wait', async () => {
    const said = await Promise.all(Array.from({ length: 8 }, (_, index) => hold(25, index < 6)));
    const lines = said.join('').trim().split('\n');
    expect(lines.filter((line) => line !== 'had it')).toEqual([]);
    expect(lines).toHaveLength(8 * 25);
  });

  it('is free after failed work, and leaves one small entry behind', async () => {
    await expect(withSetUpLock(root, () => Promise.reject(new Error('no network')))).rejects.toThrow('no network');
    let worked = 0;
    for (let time = 0; time < 3; time++) await withSetUpLock(root, () => void worked++);
    expect(worked).toBe(3);
    expect(await readdir(join(root, '.set-up'))).toHaveLength(1);
  });

  it('is not taken from a living process', async () => {
    const order: string[] = [];
    let waiter: Promise<void> | undefined;
    await withSetUpLock(root, async () => {
      waiter = withSetUpLock(root, () => void order.push('waiter'), { everyMs: 1 });
      await hold(0, false);
      order.push('holder');
    });
    await waiter;
    expect(order).toEqual(['holder', 'waiter']);
  });
});
