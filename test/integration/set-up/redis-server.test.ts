/** Set-up on machines with and without a Redis, simulated by programs on the PATH. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const ensureRedisServer = join(import.meta.dirname, '../../../infra/set-up/redis-server.mjs');
const tellErrors = join(import.meta.dirname, '../../../infra/set-up/say.mjs');

let bin: string;

beforeEach(async () => {
  bin = await mkdtemp(join(tmpdir(), 'parley-test-bin-'));
});
afterEach(() => rm(bin, { recursive: true, force: true }));

describe('set-up of redis-server', () => {
  it('uses the one on the PATH if it is new enough', async () => {
    await program('redis-server', 'echo "Redis server v=7.0.15 sha=0 malloc=libc bits=64"');
    await packageManager();
    expect(ensure()).toEqual({ status: 0, said: '' });
    expect(installations()).toEqual([]);
  });

  it('installs one with the package manager, on a machine that has never fetched its list of packages', async () => {
    await packageManager();
    const { status, said } = ensure();
    expect(said).toMatch(/^parley: installing redis-server \(apt-get package redis-server\)/);
    expect(status).toBe(0);
    expect(installations()).toEqual([
      'install -y --no-install-recommends redis-server',
      'update',
      'install -y --no-install-recommends redis-server',
    ]);
  });

  it('prints how to install one where it must not do that itself', async () => {
    expect(ensure()).toEqual({
      status: 1,
      said: [
        'parley: redis-server 7 or newer is needed and was not found.',
        'parley: Install it (https://redis.io/docs/latest/operate/oss_and_stack/install/) and put it on the PATH,',
        'parley: or start with REDIS_URL=redis://… to use a running one.',
      ].join('\n'),
    });
  });

  it('prints which version it found if that is too old', async () => {
    await program('redis-server', 'echo "Redis server v=6.0.16 sha=0"');
    const { status, said } = ensure();
    expect(status).toBe(1);
    expect(said).toContain('redis-server 7 or newer is needed; the one on the PATH is version 6.');
  });

  it('prints the error of the package manager when that fails', async () => {
    await program('apt-get', '[ "$1" = --version ] && exit 0; echo "no space left on device" >&2; exit 1');
    await program('sudo', AS_IF_ALLOWED);
    const { status, said } = ensure();
    expect(status).toBe(1);
    expect(said).toContain('no space left on device');
    expect(said).toContain('parley: Install it: sudo apt-get install redis-server');
  });
});

/** `sudo -n [NAME=value] command …`, permitted. */
const AS_IF_ALLOWED = 'shift; case "$1" in *=*) shift;; true) exit 0;; esac; exec "$@"';

/** Knows no package before `update`, and then installs a Redis. */
async function packageManager(): Promise<void> {
  await program('sudo', AS_IF_ALLOWED);
  await program(
    'apt-get',
    `[ "$1" = --version ] && exit 0
echo "$@" >> '${bin}/installations'
[ "$1" = update ] && { echo > '${bin}/updated'; exit 0; }
[ -f '${bin}/updated' ] || exit 100
printf '#!/bin/sh\\necho "Redis server v=7.2.4"\\n' > '${bin}/redis-server'
/bin/chmod +x '${bin}/redis-server'`,
  );
}

async function program(name: string, script: string): Promise<void> {
  await writeFile(join(bin, name), `#!/bin/sh\n${script}\n`);
  await chmod(join(bin, name), 0o755);
}

function installations(): string[] {
  const file = join(bin, 'installations');
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
}

function ensure(): { status: number | null; said: string } {
  const script = `
    import { ensureRedisServer } from ${JSON.stringify(ensureRedisServer)};
    import { tellErrors } from ${JSON.stringify(tellErrors)};
    await tellErrors(async () => ensureRedisServer());`;
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    env: { PATH: bin },
    encoding: 'utf8',
  });
  return { status, said: stderr.trim() };
}
