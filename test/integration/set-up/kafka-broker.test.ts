/** Set-up on machines with and without Java and Maven, simulated by programs on the PATH. */
import { spawnSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const setUp = join(import.meta.dirname, '../../../infra/set-up');

let root: string;
let bin: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'parley-test-kafka-set-up-'));
  bin = join(root, 'bin');
  await mkdir(bin);
  await mkdir(join(root, 'test/support/kafka'), { recursive: true });
  await writeFile(join(root, 'test/support/kafka/pom.xml'), '<project/>');
  for (const program of ['mkdir', 'sh']) await symlink(`/bin/${program}`, join(bin, program));
});
afterEach(() => rm(root, { recursive: true, force: true }));

describe('set-up of a Kafka broker', () => {
  it('fetches the jars once, and a complete set of them', async () => {
    await java(17);
    await maven();
    const first = ensure();
    expect(first.said).toMatch(/^parley: fetching the jars of a Kafka broker/);
    expect(first.found).toMatch(/\/parley\/kafka-broker-[0-9a-f]{12}\/\*$/);
    expect(await readdir(join(first.found, '..'))).toEqual(['broker.jar']);
    await maven('exit 1');
    expect(ensure()).toEqual({ ...first, said: '' });
  });

  it('leaves no partial folder when the jars cannot be fetched', async () => {
    await java(21);
    await maven('exit 1');
    const { status, said } = ensure();
    expect(status).toBe(1);
    expect(said).toContain('The jars of a Kafka broker could not be fetched (mvn: 1).');
    expect(said).toContain('KAFKA_BROKERS=host:port');
    expect(await readdir(join(root, 'parley'))).toEqual(['locks']);
  });

  it('installs a Java with the package manager where none is new enough', async () => {
    await java(11);
    await maven();
    await program('sudo', 'shift; case "$1" in *=*) shift;; true) exit 0;; esac; exec "$@"');
    await program('apt-get', `[ "$1" = --version ] || printf '%s' "${javaScript(17)}" > '${bin}/java'`);
    const { status, said } = ensure();
    expect(said).toMatch(/^parley: installing java \(apt-get package openjdk-17-jre-headless\)/);
    expect(status).toBe(0);
  });

  it('reports what is missing where it cannot be installed', async () => {
    const withoutJava = ensure();
    expect(withoutJava.status).toBe(1);
    expect(withoutJava.said).toMatch(/^parley: A Java of version 17 or newer is needed for a Kafka broker/);
    await java(17);
    const withoutMaven = ensure();
    expect(withoutMaven.status).toBe(1);
    expect(withoutMaven.said).toMatch(/^parley: Maven \(mvn\) is needed for a Kafka broker/);
  });
});

const javaScript = (major: number): string => `#!/bin/sh\necho 'openjdk version \\"${major}.0.1\\"' >&2\n`;

async function java(major: number): Promise<void> {
  await program('java', `echo 'openjdk version "${major}.0.1"' >&2`);
}

/** A Maven that writes a jar to the requested folder. */
async function maven(
  copies = 'for word; do case $word in -DoutputDirectory=*) : > "${word#*=}/broker.jar";; esac; done',
) {
  await program('mvn', `[ "$1" = --version ] && exit 0; ${copies}`);
}

async function program(name: string, script: string): Promise<void> {
  await writeFile(join(bin, name), `#!/bin/sh\n${script}\n`);
  await chmod(join(bin, name), 0o755);
}

function ensure(): { status: number | null; found: string; said: string } {
  const script = `
    import { ensureKafkaBroker } from ${JSON.stringify(join(import.meta.dirname, '../../support/kafka/kafka-broker.mjs'))};
    import { tellErrors } from ${JSON.stringify(join(setUp, 'say.mjs'))};
    await tellErrors(async () => console.log(await ensureKafkaBroker(${JSON.stringify(root)})));`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    env: { PATH: bin, XDG_CACHE_HOME: root },
    encoding: 'utf8',
  });
  return { status, found: stdout.trim(), said: stderr.trim() };
}
