/** `npm start` as a process: output, signals, exit codes, and remaining processes. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findRunning } from '#infra/data-folder/index.ts';
import { freePort } from '#infra/private-redis/free-port.ts';
import { redisProcessesIn } from '#infra/private-redis/orphans.ts';
import { nodeStart } from '#libs/platform/config/memory.ts';
import { eventually } from '#test/support/eventually.ts';
import { IN_CAMPAIGN } from '#test/support/rounds.ts';
import { memoryGroup, type MemoryGroup } from '#test/support/memory-group.ts';

const root = join(import.meta.dirname, '../../..');
const START = [join(root, 'infra/set-up/start.mjs')];

let parent: string;
let dataDir: string;
const started: ChildProcess[] = [];

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'parley-test-start-'));
  dataDir = join(parent, 'data');
});
afterEach(async () => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
  await rm(parent, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
});

/** Neither Parley nor its Redis. */
async function expectNothingRuns(): Promise<void> {
  expect(await findRunning(dataDir)).toBeUndefined();
  expect(await redisProcessesIn(join(dataDir, 'redis'))).toEqual([]);
}

describe('npm start', () => {
  it('refuses a second Parley on its data folder in one line, and treats the signals of one Ctrl-C as one', async () => {
    const parley = await startParley({ LOG_LEVEL: 'info' });
    expect(parley.output()).toMatch(/Parley is running\.[^]*API +http:\/\/127\.0\.0\.1:\d+\/api\/v1/);
    expect(await flagsOfParley()).toEqual(nodeStart({}).flags);
    const { pid } = (await findRunning(dataDir)) ?? { pid: 0 };
    const second = run({ DATA_DIR: dataDir, PORT: String(await freePort()) });
    expect(await second.exit).toEqual({ code: 1, signal: null });
    expect(second.output().trim()).toBe(
      `parley: the data folder ${dataDir} is in use by a running Parley (pid ${pid}); stop it, or choose another with DATA_DIR=…`,
    );
    // From the terminal, then from npm through the set-up.
    process.kill(pid, 'SIGINT');
    await eventually(() => parley.output().includes('"stopping"'), { everyMs: 1 });
    parley.child.kill('SIGINT');
    expect(await parley.exit).toEqual({ code: 0, signal: null });
    await expectNothingRuns();
  });

  it('stops cleanly while it waits for an event store that is down', async () => {
    const waiting = run({
      DATA_DIR: dataDir,
      PORT: String(await freePort()),
      EVENTSTORE_URL: `esdb://127.0.0.1:${await freePort()}?tls=false`,
      LOG_LEVEL: 'warn',
    });
    await eventually(() => waiting.output().includes('waiting for the event store'));
    waiting.child.kill('SIGTERM');
    expect(await waiting.exit).toEqual({ code: 0, signal: null });
    await expectNothingRuns();
  });

  it.skipIf(!existsSync('/dev/full')).each(['a full disk', ...(IN_CAMPAIGN ? ['a reader that is gone'] : [])])(
    'serves and stops when its output goes to %s',
    async (kind) => {
      const port = await freePort();
      const full = openSync('/dev/full', 'w');
      const output = kind === 'a full disk' ? full : 'pipe';
      const parley = run({ DATA_DIR: dataDir, PORT: String(port), LOG_LEVEL: 'debug' }, { target: output });
      parley.child.stdout?.destroy();
      parley.child.stderr?.destroy();
      closeSync(full);
      const isLive = async () => (await fetch(`http://127.0.0.1:${port}/health/live`)).ok;
      await eventually(isLive);
      parley.child.kill('SIGTERM');
      expect(await parley.exit).toEqual({ code: 0, signal: null });
      await expectNothingRuns();
    },
  );

  it('connects directly to its own stores, whatever proxy is named, exits like Parley, and leaves nothing running when it is killed', async () => {
    const nobody = `http://127.0.0.1:${await freePort()}`;
    const port = await freePort();
    const proxies = { http_proxy: nobody, https_proxy: nobody, HTTP_PROXY: nobody, HTTPS_PROXY: nobody };
    const variables = { ...proxies, NODE_USE_ENV_PROXY: '1', PORT: String(port) };
    const parley = await startParley(variables);
    expect(parley.output()).toContain('API key');
    const isReady = async () => (await fetch(`http://127.0.0.1:${port}/health/ready`)).ok;
    await eventually(isReady);
    // It exits like Parley, and Parley starts again on its data.
    process.kill((await findRunning(dataDir))?.pid ?? 0, 'SIGKILL');
    expect(await parley.exit).toEqual({ code: null, signal: 'SIGKILL' });

    const again = await startParley(variables);
    await eventually(isReady);
    again.child.kill('SIGKILL');
    expect(await again.exit).toEqual({ code: null, signal: 'SIGKILL' });
    await eventually(async () => (await findRunning(dataDir)) === undefined);
    await eventually(async () => (await redisProcessesIn(join(dataDir, 'redis'))).length === 0);
  });

  it('names the backup if a signal ends Parley that a damaged log can cause', async () => {
    // In place of Parley, a program that starts faster.
    const program = join(parent, 'program.mjs');
    await writeFile(program, "process.kill(process.pid, 'SIGBUS');");
    const ended = run({}, { script: [join(root, 'infra/set-up/run.mjs'), '--production', relative(root, program)] });
    expect(await ended.exit).toEqual({ code: null, signal: 'SIGBUS' });
    expect(ended.output()).toContain('ended by SIGBUS. A damaged log can cause this: see "Backup and restore"');
  });

  it('reports in one line that the port is busy', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const refused = run({ DATA_DIR: dataDir, PORT: String(port) });
    expect(await refused.exit).toEqual({ code: 1, signal: null });
    expect(refused.output().trim()).toBe(
      `parley: port ${port} of 127.0.0.1 is in use; choose another: PORT=${port + 1} npm start`,
    );
    server.close();
  });

  // The reason is tested in `standalone.test.ts`, a line and the exit code for a reason above.
  it.runIf(IN_CAMPAIGN)('reports in one line that the folder holds foreign files', async () => {
    await writeFile(join(parent, 'thesis.txt'), '');
    const refused = run({ DATA_DIR: parent, PORT: '0' });
    expect(await refused.exit).toEqual({ code: 1, signal: null });
    expect(refused.output().trim().split('\n')).toHaveLength(1);
    expect(refused.output()).toContain('holds files that are not Parley');
  });

  it('names every wrong variable in a line of its own', async () => {
    const refused = run({ DATA_DIR: dataDir, PORT: 'web', KAFKA_BROKERS: 'localhost' });
    expect(await refused.exit).toEqual({ code: 1, signal: null });
    const lines = refused.output().trim().split('\n');
    expect(lines).toEqual([
      'parley: PORT must be a whole number from 0 to 65535; it is "web"',
      'parley: KAFKA_BROKERS must hold addresses like broker-1:9092; "localhost" is none',
      'parley: KAFKA_BROKERS needs PARLEY_TOKEN_SECRET as well, which signs what is sent to them',
    ]);
  });

  const small = memoryGroup(512 * 1024 ** 2);
  afterAll(() => small?.remove());
  it.skipIf(small === null)('fits Node, its allocator and Redis into the limit of the system', async () => {
    const parley = await startParley({}, small!);
    const start = nodeStart({}, 512 * 1024 ** 2);
    expect(start.flags).toContain('--memory-saver-mode');
    expect(await flagsOfParley()).toEqual(start.flags);
    const environment = await wordsOf('environ');
    for (const pair of Object.entries(start.environment)) expect(environment).toContain(pair.join('='));
    // The system ends Redis first, which starts again.
    const [redis = 0] = await redisProcessesIn(join(dataDir, 'redis'));
    const [ofParley, ofRedis] = [await wordsOf('oom_score_adj'), await wordsOf('oom_score_adj', redis)];
    expect(Number(ofRedis[0])).toBeGreaterThan(Number(ofParley[0]));
    parley.child.kill('SIGTERM');
    expect(await parley.exit).toEqual({ code: 0, signal: null });
  });
});

interface Run {
  readonly child: ChildProcess;
  readonly exit: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /** Standard output and standard error so far. */
  output(): string;
}

/** The words of a file of `/proc` about a process; that of Parley by default. */
async function wordsOf(file: string, pid?: number): Promise<string[]> {
  const text = await readFile(`/proc/${pid ?? (await findRunning(dataDir))?.pid}/${file}`, 'utf8');
  return text.split('\0');
}

async function flagsOfParley(): Promise<string[]> {
  const words = await wordsOf('cmdline');
  return words.slice(
    1,
    words.findIndex((word) => word.endsWith('main.ts')),
  );
}

interface RunOptions {
  /** Default: a pipe, whose content is `output`. */
  readonly target?: number | 'pipe';
  readonly group?: MemoryGroup | undefined;
  readonly script?: readonly string[];
}

function run(variables: Record<string, string>, { target = 'pipe', group, script = START }: RunOptions = {}): Run {
  const child = (group?.spawn ?? spawn)(process.execPath, [...script], {
    cwd: root,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], LOG_LEVEL: 'silent', ...variables },
    stdio: ['ignore', target, target],
  });
  started.push(child);
  let output = '';
  child.stdout?.on('data', (chunk) => (output += String(chunk)));
  child.stderr?.on('data', (chunk) => (output += String(chunk)));
  const exit = once(child, 'close').then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
  }));
  return { child, exit, output: () => output };
}

async function startParley(variables: Record<string, string> = {}, group?: MemoryGroup): Promise<Run> {
  const parley = run({ DATA_DIR: dataDir, PORT: String(await freePort()), ...variables }, { group });
  let ended = false;
  void parley.exit.then(() => (ended = true));
  await eventually(() => ended || parley.output().includes('Ctrl-C'));
  if (ended) throw new Error(`it ended: ${parley.output()}`);
  return parley;
}
