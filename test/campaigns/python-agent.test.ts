/**
 * docs/python-agent.md as its reader works through it: its files in a folder, its commands in one shell, beside a running
 * Parley. Needs Python and PyPI: `npm run test:python-agent`.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';

import { freePort } from '#infra/private-redis/free-port.ts';
import { type CommandBlock, commandBlocks } from '#test/support/document-commands.ts';
import { eventually } from '#test/support/eventually.ts';
import { type ModelServer, says, startModelServer } from '#test/support/model-server.ts';
import { type ParleyProcess, startParleyProcess } from '#test/support/parley-process.ts';
import type { Json } from '#test/support/runs-api.ts';

const root = join(import.meta.dirname, '../..');
const PAGE = 'docs/python-agent.md';
const INSTALL_MS = 900_000;

let folder: string;
let parley: ParleyProcess;
let model: ModelServer;
let shell: ChildProcess;
let output = '';
/** Of the page that no test has run yet. */
let blocks: CommandBlock[];
/** Id of the channel. */
let trip: string;
/** Addresses of the page, and those of this run. */
let addresses: readonly (readonly [string, string])[];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'parley-python-agent-'));
  const [webhook, tools] = [await freePort(), await freePort()];
  model = await startModelServer();
  parley = await startParleyProcess({
    env: {
      FETCH_ALLOW_HOSTS: `127.0.0.1:${webhook},127.0.0.1:${tools}`,
      MODEL_BASE_URL: model.baseUrl,
      MODEL_NAME: 'small',
    },
  });
  await parley.ready();
  addresses = [
    ['http://127.0.0.1:8080', parley.baseUrl],
    ['127.0.0.1:8001', `127.0.0.1:${webhook}`],
    ['--port 8001', `--port ${webhook}`],
    ['127.0.0.1:8002', `127.0.0.1:${tools}`],
    ['port=8002', `port=${tools}`],
  ];
  blocks = (await commandBlocks()).filter(({ document }) => document === PAGE);
  const page = await readFile(join(root, PAGE), 'utf8');
  for (const [, name = '', text = ''] of page.matchAll(/^```py (\S+)\n([^]*?)^```$/gm)) {
    await writeFile(join(folder, name), here(text));
  }
  // A group of its own: programs that the commands start end with it.
  const { PATH = '', HOME = '' } = process.env;
  const env = { PATH, HOME, DATA_DIR: parley.dataDir, PYTHONUNBUFFERED: '1' };
  shell = spawn('bash', { cwd: folder, env, stdio: 'pipe', detached: true });
  for (const stream of [shell.stdout, shell.stderr]) stream?.on('data', (chunk) => (output += String(chunk)));
  shell.stdin?.write(`npx() { shift; node "${root}/services/cli/main.ts" "$@"; }\n`);
}, INSTALL_MS);

// What the reader would see.
afterEach(({ task }) => {
  if (task.result?.state === 'fail') process.stderr.write(output);
});
afterAll(async () => {
  if (shell?.pid !== undefined && shell.exitCode === null) {
    process.kill(-shell.pid, 'SIGKILL');
    await once(shell, 'exit');
  }
  await parley?.stop();
  await model?.stop();
  await rm(folder, { recursive: true, force: true });
});

function here(text: string): string {
  return addresses.reduce((changed, [from, to]) => changed.replaceAll(from, to), text);
}

/** Pastes the next block of the page. @returns what it prints */
async function paste(begins: string, timeoutMs = 60_000): Promise<string> {
  const block = blocks.shift();
  expect(block?.first).toMatch(new RegExp(`^${begins}`));
  return run(block?.commands ?? '', timeoutMs);
}

async function run(commands: string, timeoutMs = 60_000): Promise<string> {
  const before = output.length;
  const mark = `--- ${Math.random()}`;
  shell.stdin?.write(`${here(commands)}\necho "${mark}"\n`);
  await eventually(() => expect(output).toContain(mark), { timeoutMs });
  return output.slice(before);
}

async function variable(name: string): Promise<string> {
  const [, value = ''] = /=(\S+)=/.exec(await run(`echo "=$${name}="`)) ?? [];
  return value;
}

/** What the channel shows below the message with this text, or this payment. */
async function below(word: string): Promise<Json[]> {
  const url = `/api/v1/channels/${trip}/interactions?include_nested_interactions=true&order=asc&size=100`;
  const { items } = (await parley.api.get(url)).json() as { items: Json[] };
  const asked = items.find(
    (one) => one.content_role === 'user_message' && JSON.stringify(one.content).includes(`"${word}"`),
  );
  return items
    .filter((one) => one.interaction_id === asked?.interaction_id && one !== asked)
    .toSorted((a, b) => a.sequence - b.sequence);
}

const FLIGHT = 'There is a flight at nine, for 120 euros ✈️.';
const CALLED = ['tool_call', 'tool_call_result'];
const kinds = (shown: readonly Json[]) =>
  shown.map(({ content_role: role, content }) => (role === 'agent_response' ? (content[0]?.type ?? 'empty') : role));

/** One answer of the agent: its call, its result, its text and its payment request, each once. */
async function isAnswered(word: string): Promise<boolean> {
  return eventually(
    async () => {
      const shown = await below(word);
      expect(kinds(shown).toSorted()).toEqual([...CALLED, 'text', 'request_payment'].toSorted());
      expect(shown.every((one) => one.complete)).toBe(true);
      expect(JSON.stringify(shown)).toContain(FLIGHT);
      return true;
    },
    { timeoutMs: 60_000 },
  );
}

it('the user, the agent and the channel are created', async () => {
  await paste('export BASE_URL');
  for (const name of ['AGENT', 'ADA', 'TRIP']) expect(await variable(name)).toMatch(/^[0-9a-f-]{36}$/);
  trip = await variable('TRIP');
  for (const name of ['AGENT_KEY', 'ADA_KEY']) expect(await variable(name)).toMatch(/^parley_live_/);
});

it(
  'the program shows a call, a checklist, an answer as it is written, and a payment request',
  { timeout: INSTALL_MS },
  async () => {
    await paste('python3 -m venv', INSTALL_MS);
    const seen = await paste('api \\$ADA_KEY POST');
    await isAnswered('Oslo');
    const frames = [...seen.matchAll(/^data: (.*)$/gm)].map(([, json = '']) => JSON.parse(json) as Json);
    const updates = frames.filter((one) => JSON.stringify(one).includes('tool_call_update'));
    const states = updates.map((one) => /"items":(\[.*?\])/.exec(JSON.stringify(one))?.[1] ?? '');
    expect(new Set(states).size).toBeGreaterThan(2);
    expect(frames.filter(({ frame }) => frame === 'delta').length).toBeGreaterThan(2);
  },
);

it('the payment is confirmed', async () => {
  await paste('api \\$ADA_KEY POST');
  await eventually(async () => {
    const shown = await below('transaction-1');
    expect(kinds(shown)).toEqual(['complete_payment', 'text']);
    expect(shown[1].content[0].text).toBe('Your ticket is on its way.');
  });
});

it('a cancelled run ends in the program and in the channel', async () => {
  await paste('api \\$ADA_KEY POST');
  await eventually(async () => {
    const shown = await below('Rome');
    const result = shown.find((one) => one.content_role === 'tool_call_result');
    expect(result.content[0]).toMatchObject({ status: 'failure', tool_result: { error: 'the run was cancelled' } });
    expect(shown.at(-1)).toMatchObject({ content_role: 'agent_response', metadata: { finish_reason: 'cancelled' } });
  });
});

it('a run of a killed program is answered once', async () => {
  await paste('api \\$ADA_KEY POST');
  expect(await isAnswered('Bern')).toBe(true);
});

it('any text of a user reaches the program', async () => {
  const content = [
    { type: 'text', text: 'Ullapool' },
    { type: 'text', text: 'line\u2028separators\u0085and 😀' },
  ];
  await run(`api $ADA_KEY POST /channels/$TRIP/interactions '${JSON.stringify({ content })}'`);
  expect(await isAnswered('Ullapool')).toBe(true);
});

it('FastAPI gets invocations by its webhook, and finishes what a killed process has accepted', async () => {
  await paste('kill \\$PROGRAM');
  const started = (word: string) =>
    run(`api $ADA_KEY POST /channels/$TRIP/interactions '{"content": [{"type": "text", "text": "${word}"}]}'`);
  await started('Paris');
  await isAnswered('Paris');
  await started('Tromsø');
  await eventually(async () => expect(kinds(await below('Tromsø'))).toContain('tool_call'));
  const uvicorn = blocks.length === 0 ? '' : here('uvicorn webhook:app --port 8001');
  await run(`kill -9 $PROGRAM; wait $PROGRAM; ${uvicorn} &\nexport PROGRAM=$!`);
  await isAnswered('Tromsø');
  const forged = await run(
    `curl -s -o /dev/null -w '%{http_code}' -X POST ${here('http://127.0.0.1:8001')}/invocations -d '{}'`,
  );
  expect(forged).toContain('401');
});

it('the server of tools knows whose message is answered, and shows orders to nobody else', async () => {
  const call = { id: 'call_1', name: 'orders__find_order', arguments: '{"id":"7"}' };
  model.script(
    says({ toolCalls: [call] }),
    says({ text: ['Sent.'] }),
    says({ toolCalls: [call] }),
    says({ text: ['No.'] }),
  );
  const printed = await paste('export ORDERS_TOKEN');
  expect(printed).toContain('"offered_as":"orders__find_order"');
  const results = await eventually(() => {
    const found = model.requests.flatMap(({ body }) => body.messages.filter(({ role }) => role === 'tool'));
    expect(found).toHaveLength(2);
    return found.map(({ content }) => content);
  });
  expect(results).toEqual([expect.stringContaining('sent'), expect.stringContaining('there is no such order')]);
  expect(blocks).toEqual([]);
});

it('a program tells its own mistake in the channel', async () => {
  const travel = await readFile(join(folder, 'travel.py'), 'utf8');
  await writeFile(
    join(folder, 'travel.py'),
    travel.replace('"type": "tool_call", **call', '"type": "tool_cal", **call'),
  );
  await run(`kill $PROGRAM; wait $PROGRAM; python stream.py &\nexport PROGRAM=$!`);
  await run(`api $PARLEY_KEY POST /agents/$AGENT/webhook '{"url": null}'`);
  await run(`api $ADA_KEY POST /channels/$TRIP/interactions '{"content": [{"type": "text", "text": "Vienna"}]}'`);
  await eventually(async () => {
    const [shown] = await below('Vienna');
    expect(shown).toMatchObject({ content_role: 'internal_error', metadata: { reason: 'agent_failed' } });
  });
});

it('the key of the program opens nothing else', async () => {
  const url = `${parley.baseUrl}/api/v1/channels/${trip}`;
  const { status } = await fetch(url, { headers: { authorization: `Bearer ${await variable('AGENT_KEY')}` } });
  expect(status).toBe(403);
});
