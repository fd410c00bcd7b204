/** The commands of README and documents, pasted into a fresh shell for each document beside a running Parley. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, copyFile, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

import { afterAll, beforeAll, expect, it } from 'vitest';

import { serveShells } from '#test/support/command-line.ts';
import { blocksNotRun, commandBlocks, isOf } from '#test/support/document-commands.ts';
import { type ParleyHere, startParleyHere } from '#test/support/parley-here.ts';

const root = join(import.meta.dirname, '../..');
const [blocks, rows] = await Promise.all([commandBlocks(), blocksNotRun()]);
const documents = Map.groupBy(
  blocks.filter((block) => rows.every((row) => !isOf(block, row))),
  ({ document }) => document,
);

/**
 * Commands that tell how they ended, in a file: `npx parley` runs in this process, and `curl` names each answer. A request
 * that is cut off on purpose (`--max-time`, `-m`) has the exit code 28, and 100 if no answer had begun.
 */
const PRELUDE = `
npx() {
  shift
  parley "$@"
  echo "exit $? npx parley $*" >> "$OUTCOMES"
}
curl() {
  command curl -s -w '%{stderr}%{http_code} %{method} %{url}\\n' "$@" 2>> "$OUTCOMES"
  local code=$?
  [ $code = 0 ] || [ $code = 28 ] || echo "exit $code curl $*" >> "$OUTCOMES"
}
`;

let parley: ParleyHere;
let folder: string;
let shells: Awaited<ReturnType<typeof serveShells>>;
const before = process.cwd();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'parley-documents-'));
  parley = await startParleyHere({ DATA_DIR: join(folder, 'data') });
  for (const name of ['docs', 'node_modules']) await symlink(join(root, name), join(folder, name));
  shells = await serveShells(join(folder, 'parley.sock'));
  // Commands read and write the files of the reader's folder.
  process.chdir(folder);
});
afterAll(async () => {
  process.chdir(before);
  shells?.stop();
  await parley?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** @returns what the commands print, and how each that is a request or a command of Parley ended */
async function paste(commands: string, given: Readonly<Record<string, string>>) {
  const outcomes = join(folder, `outcomes-${Math.random()}`);
  await appendFile(outcomes, '');
  const { PATH = '', HOME = '' } = process.env;
  const env = { PATH, HOME, OUTCOMES: outcomes, DATA_DIR: join(folder, 'data'), ...given };
  const shell = spawn('bash', ['-u'], { cwd: folder, env });
  shell.stdin.end(shells.definition + PRELUDE + commands.replaceAll('http://127.0.0.1:8080', parley.baseUrl));
  const [printed, complaints] = await Promise.all([text(shell.stdout), text(shell.stderr), once(shell, 'exit')]);
  const lines = (await readFile(outcomes, 'utf8')).trim().split('\n');
  return { printed, complaints, lines, failed: lines.filter((line) => !/^([12]\d\d [A-Z]+|exit 0) /.test(line)) };
}

/** What the documents say that the reader has. */
async function ofReader(): Promise<Record<string, string>> {
  const idOf = async (path: string, body: object) => {
    const created = await parley.api.post(`/api/v1/${path}`, body);
    return (created.json() as { id: string }).id;
  };
  const channel = await idOf('channels', { name: 'Support' });
  const open = { content_role: 'agent_response', content: [], complete: false };
  await copyFile(join(root, 'test/fixtures/media/encrypted.pdf'), join(folder, 'handbook.pdf'));
  return {
    KEY: parley.apiKey,
    URL: parley.baseUrl,
    CHANNEL: channel,
    GRAPH: await idOf('knowledge', { name: 'Databases' }),
    INTERACTION: await idOf(`channels/${channel}/interactions`, open),
  };
}

it.each([...documents])(
  'the commands of %s work as they are',
  async (_document, pasted) => {
    const commands = pasted.map((block) => block.commands).join('\n');
    const { complaints, failed, lines } = await paste(commands, await ofReader());
    expect({ complaints, failed }).toEqual({ complaints: '', failed: [] });
    expect(lines.length).toBeGreaterThan(0);
  },
  180_000,
);
