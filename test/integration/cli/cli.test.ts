import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type DataFolder, openDataFolder } from '#infra/data-folder/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { VERSION } from '#libs/platform/config/index.ts';
import { startTestApi, type TestApi } from '#test/support/test-api.ts';
import { type CommandRun, PARLEY_COMMAND, runParley, runParleyProcess } from '#test/support/command-line.ts';
import { keysIn } from '#test/support/redis-commands.ts';

describe('parley beside a running system', () => {
  let api: TestApi;
  let folder: DataFolder;
  let dataDir: string;

  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'parley-test-cli-'));
    api = await startTestApi();
    // Like a running Parley, which publishes the addresses of its stores in its data folder.
    folder = await openDataFolder(dataDir);
    await folder.publish({ eventstoreUrl: api.stores.eventStore.url, redisUrl: api.stores.redis.url });
  });
  afterAll(async () => {
    await folder.release();
    await api.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  const run = (...args: string[]): Promise<CommandRun> => runParley({ DATA_DIR: dataDir }, ...args);
  const json = async (...args: string[]) => {
    const { stdout, stderr } = await run(...args, '--json');
    expect(stderr).toBe('');
    return JSON.parse(stdout);
  };
  const statusWith = async (key: string): Promise<number> =>
    (await api.call({ method: 'GET', url: '/api/v1/users', key })).status;

  it('creates keys that work at once, rotates and revokes them', { timeout: 120_000 }, async () => {
    const organization = await json('organizations', 'create', 'Acme', '--application', 'health');
    const user = await json('users', 'create', 'Ada', '--email', 'ada@example.org', '-o', organization.id);
    await json('organizations', 'update', organization.id, '--owner', user.id);
    const create = ['keys', 'create', '--name', 'backend', '--scopes', 'read', '-o', organization.id];
    const key = await json(...create, '--access', 'organization');
    expect(key).toMatchObject({ name: 'backend', principal: { type: 'user', id: user.id }, scopes: ['read'] });
    expect(key.access).toBe('organization');
    const users = await api.call({ method: 'GET', url: '/api/v1/users', key: key.key });
    expect(users.json.items).toMatchObject([{ id: user.id, display_name: 'Ada', email: 'ada@example.org' }]);

    const next = await json('keys', 'rotate', key.id, '-o', organization.id);
    expect([await statusWith(key.key), await statusWith(next.key)]).toEqual([200, 200]);
    await json('keys', 'revoke', key.id, '-o', organization.id);
    await eventually(async () => (await statusWith(key.key)) === 401);
    expect(await statusWith(next.key)).toBe(200);

    const listed = await run('keys', 'list', '-o', organization.id);
    const [head, ...lines] = listed.stdout.trim().split('\n');
    expect(head).toMatch(/^ID +NAME +STATUS +PRINCIPAL/);
    expect(lines.map((line) => line.split(/ {2,}/).slice(0, 3))).toEqual([
      [next.id, 'backend', 'active'],
      [key.id, 'backend', 'revoked'],
    ]);
    expect(listed.stdout).not.toContain(next.key);

    await json('users', 'deactivate', user.id, '-o', organization.id);
    await eventually(async () => (await statusWith(next.key)) === 401);
  });

  it('takes names as arguments or as options', { timeout: 120_000 }, async () => {
    const organization = await json('organizations', 'create', '--name', 'By option');
    expect(organization).toMatchObject({ name: 'By option' });
    expect(await json('users', 'create', '--display-name', 'Ada', '-o', organization.id)).toMatchObject({
      display_name: 'Ada',
    });
    for (const [args, line] of [
      [['organizations', 'create'], 'parley: a name is missing; give it with --name'],
      [['users', 'create'], 'parley: a name is missing; give it with --display-name'],
      [['users', 'create', 'Ada', '--display-name', 'Eve'], 'parley: two names are given, Ada and Eve'],
    ] as const) {
      expect(await run(...args)).toMatchObject({ exitCode: 1, stdout: '', stderr: `${line}\n` });
    }
  });

  it('uses the first organization by default', async () => {
    const [owner] = await json('users', 'list');
    expect(owner).toMatchObject({ id: api.userId, organization_id: api.organizationId });
  });

  it('reports mistakes in one line, and fails', { timeout: 120_000 }, async () => {
    const wrong: [string[], RegExp][] = [
      [['keys', 'revoke', 'nope'], /^parley: the organization has no key nope; /],
      [['keys', 'create', '--scopes', 'fly'], /^parley: --scopes: /],
      [['keys', 'create', '--user', 'absent'], /^parley: --user: the organization has no such active user$/],
      [['keys', 'create', '--access', 'all'], /^parley: --access: /],
      [['keys', 'create', '--scopes', 'admin'], /^parley: --access: the scope admin concerns the organization: ask/],
      [['keys', 'create', '--expires', '2020-01-01T00:00:00Z'], /^parley: --expires: the time has passed already$/],
      [['users', 'list', '-o', 'nobody'], /^parley: there is no organization nobody$/],
      [['organizations', 'fly'], /^error: /],
      [
        ['rebuild', '--only', 'users', 'wizards'],
        /^parley: there are no read models of "wizards"; choose from channels, read_markers, organizations, users, keys, .+$/,
      ],
      [['rebuild', '--only', 'users', '--accept-lost-events'], /^parley: --accept-lost-events needs a rebuild of all/],
    ];
    for (const [args, line] of wrong) {
      const { exitCode, stdout, stderr } = await run(...args);
      expect(exitCode).toBe(1);
      expect(stdout).toBe('');
      expect(stderr.trim().split('\n')).toEqual([expect.stringMatching(line)]);
    }
  });

  it('administers another Parley by its URL and a key', { timeout: 120_000 }, async () => {
    const baseUrl = await api.listen();
    const remote = (...args: string[]) =>
      runParley({ PARLEY_URL: baseUrl, PARLEY_KEY: api.rootKey }, ...args, '--json');
    const user = JSON.parse((await remote('users', 'create', 'Grace')).stdout);
    expect(user).toMatchObject({ display_name: 'Grace', organization_id: api.organizationId });
    expect(JSON.parse((await remote('users', 'list')).stdout)).toContainEqual(user);
    expect(await runParley({ PARLEY_URL: baseUrl, PARLEY_KEY: 'wrong' }, 'users', 'list')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/^parley: /),
    });
    // Never the local installation in its place.
    expect(await runParley({ PARLEY_URL: baseUrl, DATA_DIR: dataDir }, 'users', 'list')).toMatchObject({
      exitCode: 1,
      stdout: '',
      stderr: expect.stringMatching(/set PARLEY_KEY/),
    });
  });

  it('rebuilds the read models under the running system', async () => {
    const { redis } = api.stores.platform;
    await redis.remove(await keysIn(redis, 'parley:rm:*user*'));
    const { events } = await json('rebuild');
    expect(events).toBeGreaterThan((await json('rebuild', '--only', 'users')).events);
    const users = await api.call({ method: 'GET', url: '/api/v1/users', key: api.rootKey });
    expect(users.json.items).toContainEqual(expect.objectContaining({ id: api.userId }));
  });
});

describe('parley where nothing runs', () => {
  let dataDir: string;
  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'parley-test-cli-'));
  });
  afterAll(() => rm(dataDir, { recursive: true, force: true }));

  it('runs the stores of the data folder for as long as it takes', { timeout: 120_000 }, async () => {
    const made = await runParleyProcess({ DATA_DIR: dataDir }, 'organizations', 'create', 'Acme', '--json');
    expect(made.stderr).toBe('');
    const listed = await runParley({ DATA_DIR: dataDir }, 'organizations', 'list', '--json');
    expect(JSON.parse(listed.stdout)).toEqual([JSON.parse(made.stdout)]);
    // The folder was released.
    await (await openDataFolder(dataDir)).release();
  });

  it('does not touch the topics and groups of KAFKA_BROKERS, which belong to other stores', async () => {
    let connections = 0;
    const broker = createServer((socket) => (connections++, socket.destroy())).listen(0, '127.0.0.1');
    await once(broker, 'listening');
    const address = broker.address();
    if (address === null || typeof address === 'string') throw new TypeError('no port');
    try {
      const kafka = { KAFKA_BROKERS: `127.0.0.1:${address.port}`, PARLEY_TOKEN_SECRET: 's'.repeat(40) };
      const { exitCode, stderr } = await runParley({ DATA_DIR: dataDir, ...kafka }, 'rebuild');
      expect({ exitCode, stderr, connections }).toEqual({ exitCode: 0, stderr: '', connections: 0 });
    } finally {
      broker.close();
    }
  }, 120_000);

  it('does not make a data folder where there is none', async () => {
    const { exitCode, stderr } = await runParley({ DATA_DIR: join(dataDir, 'typo') }, 'keys', 'list');
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^parley: there is no data folder .*typo; /);
  });

  it('prints its version', async () => {
    expect(await runParleyProcess({}, '--version')).toEqual({ exitCode: 0, stdout: `${VERSION}\n`, stderr: '' });
  });

  it.each(['standalone', 'users list'])('refuses to start on a full disk with one line (%s)', async (command) => {
    const full = await mkdtemp(join(dataDir, 'full-'));
    // A limit on the size of files stands in for a full disk: the same calls fail.
    const shell = `trap '' XFSZ; ulimit -f 100; exec "$0" "$1" ${command}`;
    const env = { PATH: process.env['PATH'] ?? '', DATA_DIR: full, PORT: '0' };
    const run = promisify(execFile)('/bin/sh', ['-c', shell, process.execPath, PARLEY_COMMAND], { env });
    await expect(run).rejects.toMatchObject({
      code: 1,
      stdout: '',
      stderr: `parley: the disk of the data folder ${full} is full or takes no writes (EFBIG): make room, at least 1 MiB, and start again\n`,
    });
  });

  it('shows its configuration without secrets, and names what is wrong with it', async () => {
    const secret = 'k'.repeat(40);
    const { stdout } = await runParley({ PORT: '9090', PARLEY_BOOTSTRAP_KEY: secret }, 'config');
    expect(stdout).toMatch(/^PORT +9090 +environment /m);
    expect(stdout).toMatch(/^HOST +127\.0\.0\.1 +default /m);
    expect(stdout).not.toContain(secret);
    const wrong = await runParley({ PORT: 'many' }, 'keys', 'list');
    expect(wrong.exitCode).toBe(1);
    expect(wrong.stderr).toMatch(/^parley: PORT must be a whole number .*\n$/);
  });
});
