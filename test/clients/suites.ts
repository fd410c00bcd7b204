/** Runs suites of clients against an event store; each is installed from its registry, once. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

import { installed, pythonWith } from '#test/support/foreign-packages.ts';

import { GO, PYTHON, RUST, type LeftOut } from './left-out.ts';
import { writeRustTests } from './rust-tests.ts';

const PYTHON_CLIENT = '1.3.5';
const RUST_CRATE = '1.2.0';
const GO_MODULE = 'github.com/kurrent-io/KurrentDB-Client-Go@v1.4.2';
const JAVA_CLIENT = '1.1.0';

/** Deadline of a whole suite, so that a test that hangs ends it. */
const SUITE_MS = 15 * 60_000;

export interface TestResult {
  readonly test: string;
  readonly outcome: 'passed' | 'failed' | 'left out';
  readonly why?: string | undefined;
}

export interface SuiteOptions {
  /** `host:port` of an event store without TLS and credentials. */
  readonly address: string;
  /** File for the whole output of the suite. */
  readonly outputFile: string;
  readonly say: (line: string) => void;
}

export type Suite = (options: SuiteOptions) => AsyncGenerator<TestResult>;

const run = promisify(execFile);

/** The package has no tests, but a guide with 86 examples that build on each other. */
export async function* pythonGuide({ address, outputFile, say }: SuiteOptions): AsyncGenerator<TestResult> {
  const python = await pythonWith('kurrentdbclient', PYTHON_CLIENT, 'python3', say);
  const args = [join(import.meta.dirname, 'guide.py'), `kurrentdb://${address}?Tls=false`, ...Object.keys(PYTHON)];
  yield* leftOut(PYTHON);
  yield* resultsIn(OWN_LINE, linesOf(python, args, outputFile));
}

/** The tests of the crate, without their runner, which starts containers. */
export async function* rustSuite({ address, outputFile, say }: SuiteOptions): AsyncGenerator<TestResult> {
  const name = `kurrentdb-rust-${RUST_CRATE}`;
  const folder = await installed(name, `kurrentdb ${RUST_CRATE} from crates.io`, say, (target) =>
    writeRustTests(target, RUST_CRATE),
  );
  yield* leftOut(RUST);
  // One at a time: one of them restarts all groups.
  const harness = ['--test-threads=1', ...Object.keys(RUST).flatMap((part) => ['--skip', part])];
  const env = { EVENTSTORE_URL: `esdb://${address}?tls=false&defaultDeadline=60000`, RUST_BACKTRACE: '0' };
  const lines = linesOf('cargo', ['test', '--test', 'suite', '--', ...harness], outputFile, { cwd: folder, env });
  yield* resultsIn(/^test (?<test>\S+) \.\.\. (?<outcome>ok|FAILED)$/, lines);
}

/** The tests of the module. Its fixtures name several servers; here they are all the same. */
export async function* goSuite({ address, outputFile, say }: SuiteOptions): AsyncGenerator<TestResult> {
  const folder = await installed('kurrentdb-go', `${GO_MODULE} from the Go module proxy`, say, async (target) => {
    const { stdout } = await run('go', ['mod', 'download', '-json', GO_MODULE], { cwd: target });
    const { Dir } = JSON.parse(stdout) as { readonly Dir: string };
    // Files of the module cache are read-only.
    await run('cp', ['-R', '--no-preserve=mode', `${Dir}/.`, target]);
    const fixture = join(target, 'test/client_fixture_test.go');
    const text = await readFile(fixture, 'utf8');
    const withAddress = text.replaceAll(/fmt\.Sprintf\("kurrentdb:.*"(?:, (\w+))?\)/g, (_, file?: string) =>
      file === undefined ? 'os.Getenv("EVENTSTORE_URL")' : `os.Getenv("EVENTSTORE_URL") + ${file}[:0]`,
    );
    await writeFile(fixture, withAddress);
    await run('go', ['test', '-c', '-o', 'test/suite', './test'], { cwd: target });
  });
  yield* leftOut(GO);
  const args = ['-test.v', `-test.skip=${Object.keys(GO).join('|')}`];
  const env = { EVENTSTORE_URL: `kurrentdb://admin:changeit@${address}?tls=false` };
  const lines = linesOf('./suite', args, outputFile, { cwd: join(folder, 'test'), env });
  yield* resultsIn(/^\s*--- (?<outcome>PASS|FAIL): (?<test>\S+)/, lines);
}

/** The jar has no tests: a program that uses the client. */
export async function* javaProgram({ address, outputFile, say }: SuiteOptions): AsyncGenerator<TestResult> {
  const name = `io.kurrent:kurrentdb-client ${JAVA_CLIENT} from Maven`;
  const folder = await installed(`kurrentdb-java-${JAVA_CLIENT}`, name, say, async (target) => {
    await writeFile(join(target, 'pom.xml'), POM);
    await run('mvn', ['-q', '-B', 'dependency:build-classpath', '-Dmdep.outputFile=classpath'], { cwd: target });
  });
  const classes = join(folder, 'classes');
  const classPath = [(await readFile(join(folder, 'classpath'), 'utf8')).trim(), classes].join(delimiter);
  await run('javac', ['-nowarn', '-cp', classPath, '-d', classes, join(import.meta.dirname, 'Program.java')]);
  const args = ['-cp', classPath, 'Program', `kurrentdb://${address}?tls=false`];
  yield* resultsIn(OWN_LINE, linesOf('java', args, outputFile));
}

const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>parley</groupId>
  <artifactId>clients</artifactId>
  <version>0</version>
  <dependencies>
    <dependency>
      <groupId>io.kurrent</groupId>
      <artifactId>kurrentdb-client</artifactId>
      <version>${JAVA_CLIENT}</version>
    </dependency>
  </dependencies>
</project>
`;

function* leftOut(table: LeftOut): Generator<TestResult> {
  for (const [test, why] of Object.entries(table)) yield { test, outcome: 'left out', why };
}

/** A line of `guide.py` and of `Program.java`. */
const OWN_LINE = /^(?<outcome>ok|FAILED)\t(?<test>[^\t]*)(?:\t(?<why>.*))?$/;

async function* resultsIn(pattern: RegExp, lines: AsyncIterable<string>): AsyncGenerator<TestResult> {
  for await (const line of lines) {
    const { outcome, test = '', why } = pattern.exec(line)?.groups ?? {};
    if (outcome !== undefined) yield { test, outcome: /ok|PASS/.test(outcome) ? 'passed' : 'failed', why };
  }
}

/** The lines of both outputs. @throws Error when the program could not run, or ran out of time */
async function* linesOf(
  program: string,
  args: readonly string[],
  outputFile: string,
  { cwd, env }: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> } = {},
): AsyncGenerator<string> {
  const options = { cwd, env: { ...process.env, ...env }, timeout: SUITE_MS, killSignal: 'SIGKILL' } as const;
  const child = spawn('/bin/sh', ['-c', 'exec "$0" "$@" 2>&1', program, ...args], {
    ...options,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const output = createWriteStream(outputFile);
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      output.write(`${line}\n`);
      yield line;
    }
  } finally {
    output.end();
  }
  const [code, signal] = await exited;
  if (signal !== null) throw new Error(`${program} was ended by ${signal}`);
  if (code !== 0 && code !== 1 && code !== 101) throw new Error(`${program} ended with ${code}`);
}
