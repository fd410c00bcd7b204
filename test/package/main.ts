/**
 * `npm run test:package [-- --node 22.13.0,24]`: installs the packed Parley and its client in a project, and runs one test
 * file with every test runner on every Node that the package promises. Not part of `npm test`: it fetches Jest and the
 * versions of Node from the registry. Some of the runners are in test/integration/testing/package.test.ts.
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { parseArgs, promisify } from 'node:util';

const root = join(import.meta.dirname, '../..');
const RUN_MS = 300_000;
const QUIET = ['--no-audit', '--no-fund', '--loglevel=error', '--prefer-offline'];

const FLOW = `
  const parley = await startParley();
  try {
    const { url, apiKey, client, createChannel, createUser } = await parley.createOrganization();
    const ada = await createUser({ display_name: 'Ada' });
    const { id } = await createChannel({ participants: [{ type: 'authenticated_user', user_id: ada.id }] });
    const body = { content: [{ type: 'text', text: 'Hello!' }] };
    await ada.client.rest.POST('/api/v1/channels/{id}/interactions', { params: { path: { id } }, body });
    let last;
    for await (const { type } of client.channel(id).subscribe({ after: 0 })) {
      last = type;
      if (type === 'interaction.posted') break;
    }
    const headers = { authorization: 'Bearer ' + apiKey, 'content-type': 'application/json' };
    const post = (path, value) => fetch(url + path, { method: 'POST', headers, body: JSON.stringify(value) });
    const agent = await (await post('/api/v1/agents', { name: 'Echo' })).json();
    const statuses = [
      (await fetch(url + '/api/v1/channels/none', { headers })).status,
      (await post('/api/v1/channels', [])).status,
      (await post('/api/v1/agents/' + agent.id + '/prompt', { prompt: 'Hi' })).status,
    ];
    if (String([last, ...statuses]) !== 'interaction.posted,404,422,200') throw new Error(String([last, ...statuses]));
  } finally {
    await parley.stop();
  }
`;

const imported = `import { startParley } from 'parley/testing';`;
const required = `const { startParley } = require('parley/testing');`;
const later = `let startParley; beforeAll(async () => { ({ startParley } = await import('parley/testing')); });`;
const test = (options: string): string => `test('the flow', ${options}async () => {${FLOW}}, 240_000);`;

const FILES: Readonly<Record<string, string>> = {
  'node/esm.mjs': `import { test } from 'node:test'; ${imported} ${test('').replace(', 240_000', '')}`,
  'node/cjs.cjs': `const { test } = require('node:test'); ${required} ${test('').replace(', 240_000', '')}`,
  'jest/esm.test.mjs': `import { test } from '@jest/globals'; ${imported} ${test('')}`,
  'jest/cjs.test.cjs': `${required} ${test('')}`,
  'jest/later.test.cjs': `${later} ${test('')}`,
  'vitest/esm.test.mjs': `import { test } from 'vitest'; ${imported} ${test('')}`,
};

const JEST = ['node_modules/jest/bin/jest.js', '--testMatch'];
const VITEST = ['node_modules/vitest/vitest.mjs', 'run', '--dir', 'vitest', '--pool'];
/** Arguments of Node by the name of the run. */
const RUNS: Readonly<Record<string, readonly string[]>> = {
  'node:test, import': ['--test', 'node/esm.mjs'],
  'node:test, require': ['--test', 'node/cjs.cjs'],
  'jest, import': ['--experimental-vm-modules', ...JEST, '**/jest/esm.test.mjs'],
  'jest, require': [...JEST, '**/jest/cjs.test.cjs'],
  'jest, import()': ['--experimental-vm-modules', ...JEST, '**/jest/later.test.cjs'],
  ...Object.fromEntries(
    ['forks', 'threads', 'vmForks', 'vmThreads'].map((pool) => [`vitest, ${pool}`, [...VITEST, pool]]),
  ),
};

const { values } = parseArgs({ options: { node: { type: 'string', default: '22.13.0,22,24,26' } } });
const folder = await mkdtemp(join(tmpdir(), 'parley-package-'));
const execute = promisify(execFile);
try {
  process.exitCode = (await main()) ? 0 : 1;
} finally {
  await rm(folder, { recursive: true, force: true });
}

async function main(): Promise<boolean> {
  await makeProject();
  let failed = 0;
  for (const version of values.node.split(',')) {
    const node = await installNode(version);
    for (const [name, args] of Object.entries(RUNS)) {
      const problem = await problemOf(node, args);
      if (problem !== null) failed += 1;
      console.log(`${problem === null ? 'ok    ' : 'FAILED'}  Node ${version}, ${name}${problem ?? ''}`);
    }
  }
  return failed === 0;
}

async function makeProject(): Promise<void> {
  for (const [name, text] of Object.entries(FILES)) {
    await mkdir(join(folder, name, '..'), { recursive: true });
    await writeFile(join(folder, name), text);
  }
  await writeFile(join(folder, 'package.json'), '{"private":true}');
  const { stdout } = await execute(process.execPath, [join(root, 'infra/package/main.ts'), folder], { cwd: root });
  const pack = ['pack', '--silent', '--pack-destination', folder, join(root, 'libs/client')];
  const client = await execute('npm', pack, { cwd: folder });
  const packages = [stdout.trim(), join(folder, client.stdout.trim()), 'jest', '@jest/globals', 'vitest'];
  await execute('npm', ['install', ...QUIET, ...packages], { cwd: folder });
}

/** @returns the folder of its binary */
async function installNode(version: string): Promise<string> {
  const own = join(folder, `node-${version}`);
  await mkdir(own);
  await writeFile(join(own, 'package.json'), '{"private":true,"allowScripts":{"node":true}}');
  await execute('npm', ['install', ...QUIET, `node@${version}`], { cwd: own });
  return join(own, 'node_modules/node/bin');
}

/** @returns null if the run passes, else the end of its output */
async function problemOf(node: string, args: readonly string[]): Promise<string | null> {
  const { PATH = '', HOME = '' } = process.env;
  const env = { PATH: [node, PATH].join(delimiter), HOME };
  try {
    await execute(join(node, 'node'), [...args], { cwd: folder, env, timeout: RUN_MS });
    return null;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    return `\n${`${stdout}\n${stderr}`.trim().split('\n').slice(-25).join('\n')}`;
  }
}
