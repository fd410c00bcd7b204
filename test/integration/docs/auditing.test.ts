/** The part of docs/auditing.md about a backup: its program reads the copy of a log with the official client. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

import { expect, it } from 'vitest';

import { freePort } from '#infra/private-redis/free-port.ts';
import { COMPILE_CACHE } from '#test/support/child-process.ts';
import { runParley } from '#test/support/command-line.ts';
import { startParleyHere } from '#test/support/parley-here.ts';

const root = join(import.meta.dirname, '../../..');
const common = { PATH: process.env['PATH'] ?? '', NODE_COMPILE_CACHE: COMPILE_CACHE };

it('docs/auditing.md has a program that names who made each event of a backup', { timeout: 120_000 }, async () => {
  const page = await readFile(join(root, 'docs/auditing.md'), 'utf8');
  const program = /```js\n([^]*?)```/.exec(page)?.[1] ?? '';
  const folder = await mkdtemp(join(tmpdir(), 'parley-audit-'));
  const dataDir = join(folder, 'data');
  const parley = await startParleyHere({ DATA_DIR: dataDir });
  const port = await freePort();
  let server: ReturnType<typeof spawn> | undefined;
  try {
    await writeFile(join(folder, 'audit.mjs'), program);
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
    const { id } = (await parley.api.post('/api/v1/channels', { name: 'Orders' })).json() as { id: string };
    const changes = { name: 'Returns', meta_data: { order: 7 } };
    const headers = { authorization: `Bearer ${parley.apiKey}`, 'content-type': 'application/json' };
    const patched = await fetch(`${parley.baseUrl}/api/v1/channels/${id}`, {
      method: 'PATCH',
      headers: { ...headers, 'x-request-id': 'ticket-4711' },
      body: JSON.stringify(changes),
    });
    expect(patched.status).toBe(200);

    const copy = join(folder, 'audit-copy');
    const run = (args: string[], env: Record<string, string>) =>
      spawn(process.execPath, args, { cwd: folder, env: { ...common, ...env }, stdio: ['ignore', 'pipe', 'inherit'] });
    expect(await runParley({ DATA_DIR: dataDir }, 'backup', copy)).toMatchObject({ exitCode: 0, stderr: '' });
    const settings = { EVENTSTORE_INSECURE: 'true', EVENTSTORE_PORT: String(port), DATA_DIR: copy };
    server = run([join(root, 'infra/embedded-eventstore/main.ts')], settings);
    await once(server.stdout!, 'data');
    const reader = run(['audit.mjs'], { CHANNEL: id, EVENTSTORE_URL: `esdb://127.0.0.1:${port}?tls=false` });
    const lines = (await text(reader.stdout!)).trim().split('\n');
    expect(lines).toEqual([
      expect.stringMatching(/^1 \S+ ChannelCreated\.v1 by user \S+, key [0-9a-f-]+ in \S+$/),
      expect.stringMatching(/^2 \S+ ChannelChanged\.v1 by user \S+, key [0-9a-f-]+ in ticket-4711$/),
    ]);
  } finally {
    server?.kill();
    await parley.stop();
    await rm(folder, { recursive: true, force: true });
  }
});
