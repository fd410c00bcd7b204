/** The examples of docs/testing.md in other languages, each as it stands there, in a project of its own. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { buildImages } from '#test/images/build.mjs';
import { PARLEY_IMAGE } from '#test/images/images.mjs';

const BUILD_MS = 900_000;
/** The first run fetches the packages of the language. */
const EXAMPLE_MS = 600_000;

let folder: string;
let text: string;
beforeAll(async () => {
  await buildImages(['parley']);
  folder = await mkdtemp(join(tmpdir(), 'parley-test-examples-'));
  text = await readFile(join(import.meta.dirname, '../../docs/testing.md'), 'utf8');
}, BUILD_MS);
// Go's module cache is read-only, and stays where it is.
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Writes the named files of the document into a folder of their own. @returns the folder */
async function project(...names: readonly string[]): Promise<string> {
  const place = await mkdtemp(join(folder, 'project-'));
  for (const name of names) {
    const shown = new RegExp(`^\`\`\`\\w+ ${name.replaceAll('.', '\\.')}\\n([^]*?)^\`\`\`$`, 'm').exec(text)?.[1];
    if (shown === undefined) throw new Error(`docs/testing.md does not show ${name}`);
    await mkdir(dirname(join(place, name)), { recursive: true });
    await writeFile(join(place, name), shown.replaceAll('parley:0.1.0', PARLEY_IMAGE));
  }
  return place;
}

/** The command with which the document installs something. */
function command(begin: string): string {
  const line = text.split('\n').find((one) => one.startsWith(begin));
  if (line === undefined) throw new Error(`docs/testing.md does not show ${begin}`);
  return line;
}

async function sh(cwd: string, script: string): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)('/bin/sh', ['-euc', script], {
    cwd,
    maxBuffer: 1e8,
    // As in choice.ts: the container that removes others is not available everywhere.
    env: { ...process.env, TESTCONTAINERS_RYUK_DISABLED: process.env['TESTCONTAINERS_RYUK_DISABLED'] ?? 'false' },
  });
  return stdout + stderr;
}

it('Python', { timeout: EXAMPLE_MS }, async () => {
  const place = await project('test_channels.py');
  const output = await sh(
    place,
    `python3 -m venv venv && . venv/bin/activate && ${command('pip install testcontainers')} --quiet && python3 test_channels.py`,
  );
  expect(output).toMatch(/^Ran 1 test in .*\n\nOK$/m);
});

it('Java', { timeout: EXAMPLE_MS }, async () => {
  const place = await project('pom.xml', 'src/test/java/ChannelsTest.java');
  // Its client speaks one version of Docker's protocol, and does not ask an older Docker for its own.
  const version = `$(docker version --format '{{.Server.APIVersion}}')`;
  const output = await sh(place, `mvn --batch-mode -Dapi.version="${version}" test`);
  expect(output).toMatch(/Tests run: 1, Failures: 0, Errors: 0/);
});

it('Go', { timeout: EXAMPLE_MS }, async () => {
  const place = await project('channels_test.go');
  const output = await sh(place, `${command('go mod init')} && go test -v ./...`);
  expect(output).toMatch(/^--- PASS: TestChannelIsCreated/m);
});
