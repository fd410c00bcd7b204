// Installs what a Kafka broker of a test needs: a Java of version 17 or newer, and the jars of
// the broker, which Maven fetches once for all clones of this user. Parley itself needs neither.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { withSetUpLock } from '../../../infra/set-up/lock.mjs';
import { say, SetUpError } from '../../../infra/set-up/say.mjs';
import { installCommand, installProgram, run } from '../../../infra/set-up/system-packages.mjs';
import { userCache } from '../user-cache.mjs';

const OLDEST_JAVA = 17;

/** Packages with `java`, by package manager. */
const JAVA = {
  'apt-get': ['openjdk-17-jre-headless', 'default-jre-headless'],
  dnf: ['java-17-openjdk-headless', 'java-21-openjdk-headless'],
  yum: ['java-17-openjdk-headless'],
  apk: ['openjdk17-jre-headless'],
  pacman: ['jre17-openjdk-headless'],
  brew: ['openjdk@17'],
};

/** Packages with `mvn`, by package manager. */
const MAVEN = {
  'apt-get': ['maven'],
  dnf: ['maven'],
  yum: ['maven'],
  apk: ['maven'],
  pacman: ['maven'],
  brew: ['maven'],
};

/**
 * @param root the folder of the project
 * @param options.version of Kafka; that of the pom by default
 * @returns the class path of a broker, for `java -cp`
 */
export async function ensureKafkaBroker(root, { version } = {}) {
  ensureJava();
  const pom = join(root, 'test/support/kafka/pom.xml');
  const wanted = createHash('sha256')
    .update(`${readFileSync(pom, 'utf8')}${version ?? ''}`)
    .digest('hex');
  const jars = join(userCache, `kafka-broker-${wanted.slice(0, 12)}`);
  if (!existsSync(jars)) {
    await withSetUpLock(join(userCache, 'locks/kafka-broker'), async () => {
      // The previous holder of the lock may have done it.
      if (!existsSync(jars)) await fetchJars({ pom, jars, version });
    });
  }
  return join(jars, '*');
}

function ensureJava() {
  if ((javaVersion() ?? 0) >= OLDEST_JAVA) return;
  const { installed, manager } = installProgram('java', JAVA, () => (javaVersion() ?? 0) >= OLDEST_JAVA);
  if (!installed) throw missing(`A Java of version ${OLDEST_JAVA} or newer`, manager, JAVA);
}

/** Major version of the `java` on the PATH, undefined when there is none. */
function javaVersion() {
  const { stdout, stderr } = run('java', ['-version']);
  const major = /version "(\d+)/.exec(`${stdout ?? ''}${stderr ?? ''}`)?.[1];
  return major === undefined ? undefined : Number(major);
}

async function fetchJars({ pom, jars, version }) {
  const hasMaven = () => run('mvn', ['--version']).status === 0;
  if (!hasMaven()) {
    const { installed, manager } = installProgram('mvn', MAVEN, hasMaven);
    if (!installed) throw missing('Maven (mvn)', manager, MAVEN);
  }
  say('fetching the jars of a Kafka broker (mvn dependency:copy-dependencies); this takes about a minute …');
  // Into a temporary folder first: a folder of the final name must be complete.
  const folder = mkdtempSync(join(userCache, 'fetch-'));
  try {
    const code = await runMaven([
      '--quiet',
      '--batch-mode',
      `--file=${pom}`,
      ...(version === undefined ? [] : [`-Dkafka.version=${version}`]),
      'dependency:copy-dependencies',
      '-DincludeScope=runtime',
      `-DoutputDirectory=${folder}`,
    ]);
    if (code !== 0) throw new SetUpError(`The jars of a Kafka broker could not be fetched (mvn: ${code}).${orElse}`);
    renameSync(folder, jars);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function runMaven(args) {
  return new Promise((resolve) => {
    const maven = spawn('mvn', args, { stdio: ['ignore', 'inherit', 'inherit'] });
    maven.once('error', (error) => resolve(error.message));
    maven.once('exit', (code, signal) => resolve(code ?? signal));
  });
}

const orElse = '\nOr name brokers that run already: KAFKA_BROKERS=host:port,…';

function missing(what, manager, packages) {
  const how = manager === undefined ? '' : `\nInstall it: ${installCommand(manager, packages[manager.command][0])}`;
  return new SetUpError(`${what} is needed for a Kafka broker and was not found on the PATH.${how}${orElse}`);
}
