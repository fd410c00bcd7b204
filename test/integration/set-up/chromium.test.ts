/** Set-up on machines with and without a Chromium, simulated by programs on the PATH. */
import { spawnSync } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const setUp = join(import.meta.dirname, '../../../infra/set-up');

let bin: string;
beforeEach(async () => {
  bin = await mkdtemp(join(tmpdir(), 'parley-test-bin-'));
});
afterEach(() => rm(bin, { recursive: true, force: true }));

// On macOS, browsers are not on the PATH.
describe.skipIf(process.platform === 'darwin')('set-up of Chromium', () => {
  it('finds one on the PATH, by any of its names', async () => {
    await program('google-chrome', 'exit 0');
    expect(ensure()).toEqual({ status: 0, found: join(bin, 'google-chrome'), said: '' });
  });

  it('installs one with the package manager', async () => {
    await program('sudo', 'shift; case "$1" in *=*) shift;; true) exit 0;; esac; exec "$@"');
    await program('apt-get', `[ "$1" = --version ] || echo > '${bin}/chromium'`);
    const { status, found, said } = ensure();
    expect(said).toMatch(/^parley: installing chromium \(apt-get package chromium\)/);
    expect({ status, found }).toEqual({ status: 0, found: join(bin, 'chromium') });
  });

  it('reports that it is needed where it cannot be installed', async () => {
    const { status, said } = ensure();
    expect(status).toBe(1);
    expect(said).toMatch(/^parley: A Chromium is needed and was not found on the PATH/);
  });
});

async function program(name: string, script: string): Promise<void> {
  await writeFile(join(bin, name), `#!/bin/sh\n${script}\n`);
  await chmod(join(bin, name), 0o755);
}

function ensure(): { status: number | null; found: string; said: string } {
  const script = `
    import { ensureChromium } from ${JSON.stringify(join(import.meta.dirname, '../../support/chromium.mjs'))};
    import { tellErrors } from ${JSON.stringify(join(setUp, 'say.mjs'))};
    await tellErrors(async () => console.log(ensureChromium()));`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    env: { PATH: bin },
    encoding: 'utf8',
  });
  return { status, found: stdout.trim(), said: stderr.trim() };
}
