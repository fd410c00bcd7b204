import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findRunning, openDataFolder } from '#infra/data-folder/index.ts';
import { StartRefusal } from '#libs/platform/lifecycle/index.ts';

let parent: string;
let path: string;

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'parley-test-folder-'));
  path = join(parent, 'data');
});
afterEach(() => rm(parent, { recursive: true, force: true }));

describe('data folder', () => {
  it('is made at the first start and recognised at the next', async () => {
    const first = await openDataFolder(path);
    await first.release();

    const second = await openDataFolder(path);
    expect(second).toMatchObject({ path, instanceId: first.instanceId });
    await second.release();
  });

  it('publishes the addresses of the Parley that runs on it, to its owner only, while it runs', async () => {
    const folder = await openDataFolder(path);
    await folder.publish({ baseUrl: 'http://127.0.0.1:1', redisUrl: 'redis://:secret@127.0.0.1:2' });
    const run = await findRunning(path);
    expect(run).toMatchObject({ pid: process.pid, baseUrl: 'http://127.0.0.1:1' });
    const { mode } = await stat(join(path, 'run.json'));
    expect(mode & 0o777).toBe(0o600);

    await folder.release();
    expect(await findRunning(path)).toBeUndefined();
  });

  it('refuses a folder with foreign files, and leaves it unchanged', async () => {
    await mkdir(path);
    await writeFile(join(path, 'thesis.txt'), 'years of work');
    await expect(openDataFolder(path)).rejects.toThrow(/holds files that are not Parley's \(thesis\.txt\)/);
    await expect(stat(join(path, 'parley.lock'))).rejects.toThrow('ENOENT');
  });

  it('refuses a path where no folder can be made', async () => {
    const file = join(parent, 'file');
    await writeFile(file, '');
    await expect(openDataFolder(file)).rejects.toThrow(/cannot be used: it, or a folder above it, is a file/);
    await expect(openDataFolder(join(file, 'data'))).rejects.toThrow(/it, or a folder above it, is a file/);
    // `mkdir` fails with ENOENT there although the parent exists.
    await expect(openDataFolder('/proc/x')).rejects.toThrow(/cannot be used: no access \(ENOENT\)/);
    await expect(openDataFolder('/proc/x/y')).rejects.toThrow(/cannot be used: no access \(ENOENT\)/);
  });

  it('accepts a folder that holds only a placeholder', async () => {
    await mkdir(path);
    await writeFile(join(path, '.gitkeep'), '');
    const folder = await openDataFolder(path);
    expect(folder.path).toBe(path);
    await folder.release();
  });

  it('adopts the log of an event store that ran alone in it', async () => {
    await mkdir(join(path, 'eventstore'), { recursive: true });
    await expect(openDataFolder(path)).rejects.toThrow('(eventstore)');
    await writeFile(join(path, 'eventstore', 'events.mdb'), '');
    const folder = await openDataFolder(path);
    expect(folder.path).toBe(path);
    await folder.release();
  });

  it('refuses data of a newer Parley', async () => {
    const folder = await openDataFolder(path);
    await folder.release();
    const marker = JSON.parse(await readFile(join(path, 'parley.json'), 'utf8')) as object;
    await writeFile(join(path, 'parley.json'), JSON.stringify({ ...marker, format: 2, shape: 'unknown' }));
    await expect(openDataFolder(path)).rejects.toThrow(/newer Parley \(format 2, this one knows 1\)/);
  });

  it('refuses a damaged marker and does not start anew on old data', async () => {
    const folder = await openDataFolder(path);
    await folder.release();
    await writeFile(join(path, 'parley.json'), '{"format":');
    await expect(openDataFolder(path)).rejects.toThrow(/parley\.json is damaged/);
  });

  it('refuses a path that is a file', async () => {
    await writeFile(path, '');
    await expect(openDataFolder(path)).rejects.toThrow(StartRefusal);
  });

  it('is used by one Parley at a time, and names the process that uses it', async () => {
    const other = await holdInOtherProcess(path);
    try {
      await expect(openDataFolder(path)).rejects.toThrow(`in use by a running Parley (pid ${other.pid})`);
      expect(await findRunning(path)).toMatchObject({ pid: other.pid });
    } finally {
      other.kill('SIGKILL');
      await once(other, 'exit');
    }
  });

  it('is free again as soon as its Parley was killed', async () => {
    const other = await holdInOtherProcess(path);
    other.kill('SIGKILL');
    await once(other, 'exit');
    expect(await findRunning(path)).toBeUndefined();
    const folder = await openDataFolder(path);
    expect(folder.path).toBe(path);
    await folder.release();
  });

  it('is not opened twice by one process either', async () => {
    const folder = await openDataFolder(path);
    await expect(openDataFolder(path)).rejects.toThrow(`pid ${process.pid}`);
    await folder.release();
  });
});

async function holdInOtherProcess(dataDir: string): Promise<ChildProcess> {
  const child = fork(join(import.meta.dirname, 'hold-data-folder.process.ts'), [dataDir], { execArgv: [] });
  await once(child, 'message');
  return child;
}
