/** The private Redis of a killed Parley comes back with other bytes: what it then lacks is found on the log. */
import { open, readdir, readFile, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { redisProcessesIn } from '#infra/private-redis/orphans.ts';
import { eventually } from '#test/support/eventually.ts';
import { startParleyProcess, type ParleyProcess } from '#test/support/parley-process.ts';

const CHANNELS = 40;

interface Ready {
  readonly checks: { readonly projection: { readonly detail: { readonly check: object } } };
}

let parley: ParleyProcess;
let names: readonly string[];

beforeAll(async () => {
  parley = await startParleyProcess();
  names = Array.from({ length: CHANNELS }, (_, index) => `channel ${index}`);
  for (const name of names) {
    const reply = await parley.api.post('/api/v1/channels', { name });
    // With the reason of a refusal.
    expect(reply.json()).toMatchObject({ name });
  }
});
afterAll(() => parley?.stop());

const listed = async (): Promise<string[]> => {
  const reply = await parley.api.get(`/api/v1/channels?size=100`);
  expect(reply.status).toBe(200);
  return (reply.json() as { items: { name: string }[] }).items.map(({ name }) => name).toReversed();
};

/** Kills Parley, whose watcher then stops Redis, changes the file that Redis appends to, and starts Parley. */
async function restartOn(harm: (file: string) => Promise<void>): Promise<void> {
  await parley.kill9();
  const folder = join(parley.dataDir, 'redis');
  await eventually(async () => (await redisProcessesIn(folder)).length === 0);
  const files = await readdir(join(folder, 'appendonlydir'));
  const file = files.find((name) => name.endsWith('.incr.aof')) ?? '';
  await harm(join(folder, 'appendonlydir', file));
  await parley.start();
  await parley.ready();
}

it('lists all channels after bytes in the middle of the file were overwritten', async () => {
  await restartOn(async (file) => {
    const bytes = await readFile(file);
    // Where a channel enters the list: its entry is that of another channel then, which does not exist.
    const entry = bytes.indexOf('_', bytes.indexOf('by:open=true', bytes.length / 2));
    expect(entry).toBeGreaterThan(0);
    const handle = await open(file, 'r+');
    await handle.write('ffff', entry + 1);
    await handle.close();
  });
  await eventually(async () => expect(await listed()).toEqual(names));
  const repaired = async (): Promise<unknown> => {
    const { checks } = (await parley.api.get('/health/ready')).json() as Ready;
    return checks.projection.detail.check;
  };
  await eventually(async () => expect(await repaired()).toMatchObject({ repaired: 1 }));
});

it('lists all channels after Redis has cut off the damaged end of the file', async () => {
  await restartOn(async (file) => truncate(file, Math.floor((await stat(file)).size * 0.7) + 1));
  await eventually(async () => expect(await listed()).toEqual(names));
});
