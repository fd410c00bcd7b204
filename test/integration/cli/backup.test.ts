/* A backup taken during writes restores everything that was acknowledged before it. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { z } from 'zod';

import { openDataFolder } from '#infra/data-folder/index.ts';
import { PARLEY_COMMAND, runParley } from '#test/support/command-line.ts';
import { eventually } from '#test/support/eventually.ts';
import { startParleyHere } from '#test/support/parley-here.ts';

const made = z.object({ id: z.string() });
const page = z.object({ items: z.array(made), meta: z.object({ next_cursor: z.string().nullable() }) });

let folder: string;
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'parley-test-backup-'))));
afterEach(() => rm(folder, { recursive: true, force: true }));

const backUp = async (dataDir: string, target: string) => {
  const options = { env: { PATH: process.env['PATH'] ?? '', DATA_DIR: dataDir } };
  const { stdout } = await promisify(execFile)(process.execPath, [PARLEY_COMMAND, 'backup', target, '--json'], options);
  return JSON.parse(stdout);
};

it('holds all writes acknowledged before it, though writers continue, and Parley starts on it', async () => {
  const dataDir = join(folder, 'data');
  let parley = await startParleyHere({ DATA_DIR: dataDir });
  try {
    const channel = made.parse((await parley.api.post('/api/v1/channels', { name: 'Kept' })).json());
    const path = `/api/v1/channels/${channel.id}/interactions`;
    const acknowledged: string[] = [];
    const file = await fetch(`${parley.baseUrl}/api/v1/media/uploads`, {
      method: 'POST',
      headers: { authorization: parley.apiKey, 'content-type': 'text/plain' },
      body: 'a file of media',
    });
    const { id: mediaId } = made.parse(await file.json());
    const enough = new AbortController();
    const write = async (): Promise<void> => {
      while (!enough.signal.aborted) {
        const reply = await parley.api.post(path, { content: [{ type: 'text', text: 'a'.repeat(2_000) }] });
        if (reply.status === 200) acknowledged.push(made.parse(reply.json()).id);
      }
    };
    const writers = [write(), write(), write()];
    await eventually(() => acknowledged.length >= 50, { timeoutMs: 60_000 });
    const before = [...acknowledged];
    const target = join(folder, 'backup');
    // As a process of its own, beside the one that writes.
    expect(await backUp(dataDir, target)).toMatchObject({
      folder: target,
      bytes: expect.any(Number),
      log_check: 'passed',
    });
    // Only the owner can read it, as the original.
    expect((await stat(join(target, 'eventstore/events.mdb'))).mode & 0o777).toBe(0o600);
    enough.abort();
    await Promise.all(writers);
    expect(acknowledged.length).toBeGreaterThan(before.length);

    // Restored in place of the lost data.
    await parley.stop();
    await rm(dataDir, { recursive: true });
    await rename(target, dataDir);
    parley = await startParleyHere({ DATA_DIR: dataDir, PARLEY_BOOTSTRAP_KEY: parley.apiKey });
    const kept = new Set<string>();
    for (let cursor: string | null = ''; cursor !== null;) {
      const reply = await parley.api.get(`${path}?size=100${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
      const { items, meta } = page.parse(reply.json());
      for (const { id } of items) kept.add(id);
      cursor = meta.next_cursor;
    }
    expect(before.filter((id) => !kept.has(id))).toEqual([]);
    expect([...kept].filter((id) => !acknowledged.includes(id)).length).toBeLessThanOrEqual(writers.length);
    const media = z.object({ file_url: z.string() }).parse((await parley.api.get(`/api/v1/media/${mediaId}`)).json());
    expect(await (await fetch(media.file_url)).text()).toBe('a file of media');
    // The restored Parley works: the same key is valid, and the next sequence follows.
    const { status } = await parley.api.post(path, { content: [{ type: 'text', text: 'after' }] });
    expect(status).toBe(200);
  } finally {
    await parley.stop();
  }
}, 180_000);

it('refuses impossible requests in one line', async () => {
  const [source, used, link] = [join(folder, 'data'), join(folder, 'used'), join(folder, 'link')];
  await (await openDataFolder(source)).release();
  await symlink(source, link);
  await mkdir(used);
  await writeFile(join(used, 'a'), 'b');
  const refusal = async (dataDir: string, target: string, env: Record<string, string> = {}): Promise<string> => {
    const { exitCode, stderr } = await runParley({ DATA_DIR: dataDir, ...env }, 'backup', target);
    expect(exitCode).toBe(1);
    return stderr;
  };
  expect(await refusal(source, used)).toMatch(/^parley: .*used is not empty: name a new folder\n$/);
  expect(await refusal(source, join(folder, 'new'))).toMatch(/^parley: the log could not be copied: ENOENT.*\n$/);
  const nowhere = join(folder, 'nowhere');
  expect(await refusal(nowhere, join(folder, 'unmade'))).toBe(
    `parley: ${nowhere} is no data folder of Parley's; name another with DATA_DIR=…\n`,
  );
  await expect(stat(join(folder, 'unmade'))).rejects.toThrow('ENOENT');
  for (const inside of [source, join(source, 'backup'), join(link, 'new/backup')]) {
    expect(await refusal(source, inside)).toMatch(
      /^parley: .* is inside the data folder .*data: name a folder outside/,
    );
  }
  expect(await refusal(source, '/proc/x')).toMatch(/^parley: \/proc\/x cannot be used: ENOENT.*\n$/);
  expect(await refusal(source, join(folder, 'other'), { EVENTSTORE_URL: 'esdb://localhost:1?tls=false' })).toMatch(
    /^parley: EVENTSTORE_URL names an external event store.*\n$/,
  );
}, 120_000);
