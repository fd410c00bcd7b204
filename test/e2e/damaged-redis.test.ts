/** The private Redis of a killed Parley comes back with other bytes: what it then lacks is found on the log. */
import { cp, mkdtemp, open, readdir, readFile, rm, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';

import { redisProcessesIn } from '#infra/private-redis/orphans.ts';
import { eventually } from '#test/support/eventually.ts';
import { startParleyHere, type ParleyHere } from '#test/support/parley-here.ts';
import { startParleyProcess } from '#test/support/parley-process.ts';

const names = Array.from({ length: 40 }, (_, index) => `channel ${index}`);

interface Ready {
  readonly checks: { readonly projection: { readonly detail: { readonly check: object } } };
}

let folder: string;
let apiKey: string;
/** Starts on a copy of what the killed one left behind. */
let parley: ParleyHere | undefined;

/** Kills Parley, whose watcher then stops Redis, and keeps their files. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'parley-test-damaged-redis-'));
  const killed = await startParleyProcess();
  ({ apiKey } = killed);
  for (const name of names) {
    const reply = await killed.api.post('/api/v1/channels', { name });
    // With the reason of a refusal.
    expect(reply.json()).toMatchObject({ name });
  }
  await killed.kill9();
  await eventually(async () => (await redisProcessesIn(join(killed.dataDir, 'redis'))).length === 0);
  await cp(killed.dataDir, join(folder, 'left'), { recursive: true });
  await killed.stop();
});
afterEach(() => parley?.stop());
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Changes the file that Redis appends to, and starts Parley. */
async function startOn(harm: (file: string) => Promise<void>): Promise<ParleyHere> {
  const dataDir = await mkdtemp(join(folder, 'data-'));
  await cp(join(folder, 'left'), dataDir, { recursive: true });
  const appended = join(dataDir, 'redis/appendonlydir');
  const file = (await readdir(appended)).find((name) => name.endsWith('.incr.aof')) ?? '';
  await harm(join(appended, file));
  return (parley = await startParleyHere({ DATA_DIR: dataDir, PARLEY_BOOTSTRAP_KEY: apiKey }));
}

async function listed({ api }: ParleyHere): Promise<string[]> {
  const reply = await api.get(`/api/v1/channels?size=100`);
  expect(reply.status).toBe(200);
  return (reply.json() as { items: { name: string }[] }).items.map(({ name }) => name).toReversed();
}

it('lists all channels after bytes in the middle of the file were overwritten', async () => {
  const started = await startOn(async (file) => {
    const bytes = await readFile(file);
    // Where a channel enters the list: its entry is that of another channel then, which does not exist.
    const entry = bytes.indexOf('_', bytes.indexOf('by:open=true', bytes.length / 2));
    expect(entry).toBeGreaterThan(0);
    const handle = await open(file, 'r+');
    await handle.write('ffff', entry + 1);
    await handle.close();
  });
  await eventually(async () => expect(await listed(started)).toEqual(names));
  const repaired = async (): Promise<unknown> => {
    const { checks } = (await started.api.get('/health/ready')).json() as Ready;
    return checks.projection.detail.check;
  };
  await eventually(async () => expect(await repaired()).toMatchObject({ repaired: 1 }));
});

it('lists all channels after Redis has cut off the damaged end of the file', async () => {
  const started = await startOn(async (file) => truncate(file, Math.floor((await stat(file)).size * 0.7) + 1));
  await eventually(async () => expect(await listed(started)).toEqual(names));
});
