/** `parley tail` beside a running Parley: as a process where signals and pipes are tested, else in the process of the test. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

import { freePort } from '#infra/private-redis/free-port.ts';
import { createApiKey } from '#libs/platform/http/index.ts';
import { type Environment, PARLEY_COMMAND, startParleyCommand } from '#test/support/command-line.ts';
import { eventually } from '#test/support/eventually.ts';
import { type ParleyProcess, startParleyProcess } from '#test/support/parley-process.ts';

type Reply = readonly [status: number, headers: Record<string, string>, body: string];

/** Answers by itself as `replyTo` says (null: it breaks the connection), and passes everything else on. */
async function startCarelessProxy(target: string, replyTo: () => Reply | null | undefined, port = 0) {
  const { hostname, port: to } = new URL(target);
  const server = createServer((request, response) => {
    const reply = replyTo();
    if (reply === null) return void request.destroy();
    if (reply !== undefined) return void response.writeHead(reply[0], reply[1]).end(reply[2]);
    const { method, url: path, headers } = request;
    const onward = httpRequest({ hostname, port: to, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    request.pipe(onward.on('error', () => response.destroy()));
  });
  let upgrades = 0;
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    // What it reaches is being replaced.
    if (upgrades++ === 0) return void socket.end('HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n');
    const upstream = connect(Number(to), hostname, () => {
      const fields = request.rawHeaders.map((text, at) => (at % 2 === 0 ? `\r\n${text}: ` : text)).join('');
      upstream.write(`GET ${request.url} HTTP/1.1${fields}\r\n\r\n`);
      upstream.write(head);
      upstream.pipe(socket).pipe(upstream);
    });
    for (const one of [upstream, socket]) one.on('error', () => undefined);
  });
  await once(server.listen(port, '127.0.0.1'), 'listening');
  const { port: own } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${own}`,
    async stop(): Promise<void> {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** A full program takes a while to start on a busy machine. */
const SOON = { timeoutMs: 60_000 };

interface Tail {
  readonly lines: () => readonly string[];
  readonly errors: () => string;
  /** A line of `--json`. */
  readonly seqs: () => readonly number[];
  interrupt(): void;
  closeOutput(): void;
  /** The exit code. */
  readonly ended: Promise<number | null>;
}

describe('parley tail', { timeout: 300_000 }, () => {
  let parley: ParleyProcess;
  const endings: (() => unknown)[] = [];

  beforeAll(async () => {
    parley = await startParleyProcess();
  }, 60_000);
  afterEach(async () => {
    for (const end of endings.splice(0)) await end();
  });
  afterAll(() => parley.stop());

  type Start = (args: readonly string[], environment?: Environment) => Tail;

  /** In this process. With a key it connects at once; without one, it opens the stores to create a key, and to revoke it. */
  const tail: Start = (args, environment = { DATA_DIR: parley.dataDir, PARLEY_KEY: parley.apiKey }) => {
    const { stdout, stderr, interrupt, closeOutput, ended } = startParleyCommand(environment, 'tail', ...args);
    endings.push(async () => {
      interrupt();
      await ended;
    });
    return { ...readers(stdout, stderr), interrupt, closeOutput, ended: ended.then(({ exitCode }) => exitCode) };
  };

  /** As a process. */
  const tailProcess: Start = (args, environment = { DATA_DIR: parley.dataDir }) => {
    const env = { PATH: process.env['PATH'] ?? '', TZ: 'UTC', ...environment };
    const child = spawn(process.execPath, [PARLEY_COMMAND, 'tail', ...args], {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    endings.push(() => child.kill('SIGKILL'));
    let [output, errors] = ['', ''];
    child.stdout.on('data', (chunk) => (output += String(chunk)));
    child.stderr.on('data', (chunk) => (errors += String(chunk)));
    return {
      ...readers(
        () => output,
        () => errors,
      ),
      interrupt: () => void child.kill('SIGINT'),
      closeOutput: () => void child.stdout.destroy(),
      ended: once(child, 'close').then(() => child.exitCode),
    };
  };
  function readers(output: () => string, errors: () => string) {
    const lines = (): string[] => output().split('\n').slice(0, -1);
    return { lines, errors, seqs: () => lines().map((line) => (JSON.parse(line) as { seq: number }).seq) };
  }
  async function createChannel(): Promise<string> {
    const { id } = (await parley.api.post('/api/v1/channels', { name: 'Tailed' })).json() as { id: string };
    return id;
  }
  async function post(channel: string, ...texts: string[]): Promise<void> {
    for (const text of texts) {
      const participant = { type: 'external_agent', agent_metadata: { name: 'Bot' } };
      const body = { content: [{ type: 'text', text }], participant };
      expect((await parley.api.post(`/api/v1/channels/${channel}/interactions`, body)).status).toBe(200);
    }
  }

  it('prints events for people, without colours where the output is not a terminal', async () => {
    const channel = await createChannel();
    await post(channel, 'Where is my order?\nIt is late.');
    const environment = { DATA_DIR: parley.dataDir, PARLEY_KEY: parley.apiKey };
    const { lines, interrupt, ended } = tailProcess([channel, '--after', '0'], environment);
    await eventually(() => expect(lines()).toHaveLength(3), SOON);
    await post(channel, 'On its way.');
    await eventually(() => expect(lines()).toHaveLength(4), SOON);
    interrupt();
    expect(await ended).toBe(0);
    expect(
      lines().map((line) =>
        line.replace(/^\d\d:\d\d:\d\d/, 'hh:mm:ss').replace(/by .* \(key [0-9a-f-]{32,36}\)/, 'by NAME (key ID)'),
      ),
    ).toEqual([
      'hh:mm:ss       1  channel           created by NAME (key ID): Tailed',
      'hh:mm:ss       2  Bot               Where is my order?',
      '                                    It is late.',
      'hh:mm:ss       3  Bot               On its way.',
    ]);
  });

  it('prints at Ctrl-C how to resume, and resumes there', async () => {
    const channel = await createChannel();
    const first = tail([channel, '--after', '0', '--json']);
    await post(channel, 'one', 'two');
    await eventually(() => expect(first.seqs()).toEqual([1, 2, 3]), SOON);
    first.interrupt();
    expect(await first.ended).toBe(0);
    const command = /parley: stopped; resume with: npx parley tail (.*)\n/.exec(first.errors())?.[1];
    expect(command).toBe(`${channel} --after 3`);
    await post(channel, 'three');
    const second = tail([...(command ?? '').split(' '), '--json']);
    await eventually(() => expect(second.seqs()).toEqual([4]), SOON);
    expect(JSON.parse(second.lines()[0] ?? '')).toMatchObject({
      type: 'interaction.posted',
      data: { content: [{ type: 'text', text: 'three' }] },
    });
  });

  it('continues when Parley was killed and runs again', async () => {
    const channel = await createChannel();
    const { seqs, errors } = tail([channel, '--after', '0', '--json'], { DATA_DIR: parley.dataDir });
    await eventually(() => expect(seqs()).toEqual([1]), SOON);
    await parley.kill9();
    await eventually(() => expect(errors()).toContain('trying again in'), SOON);
    await parley.start();
    await parley.ready();
    await post(channel, 'after');
    await eventually(() => expect(seqs()).toEqual([1, 2]), SOON);
  });

  it('ends when its reader closes the pipe, and leaves no key behind', async () => {
    const channel = await createChannel();
    const { lines, closeOutput, ended } = tailProcess([channel, '--after', '0']);
    await eventually(() => expect(lines()).toHaveLength(1), SOON);
    closeOutput();
    await post(channel, 'after the reader left');
    expect(await ended).toBe(0);
    const { items } = (await parley.api.get('/api/v1/keys?size=100')).json() as {
      items: { name: string; revoked_at: string | null }[];
    };
    const own = items.filter(({ name }) => name === 'parley tail');
    expect(own.length).toBeGreaterThan(0);
    expect(own[0]?.revoked_at).not.toBeNull();
  });

  it('prints how to resume after the last event that its reader could get', async () => {
    const channel = await createChannel();
    await post(channel, 'one');
    const { seqs, closeOutput, errors, ended } = tail([channel, '--after', '0', '--json']);
    await eventually(() => expect(seqs()).toEqual([1, 2]), SOON);
    closeOutput();
    await post(channel, 'two', 'three');
    expect(await ended).toBe(0);
    expect(errors()).toContain(`parley: stopped; resume with: npx parley tail ${channel} --after 2\n`);
    // Not even the first event could be written, of a tail that began with new ones.
    const fresh = tail([channel, '--json']);
    fresh.closeOutput();
    await eventually(async () => {
      await post(channel, 'another');
      expect(fresh.errors()).toMatch(/resume with: .* --after \d+\n/);
    }, SOON);
    expect(await fresh.ended).toBe(0);
    const resumed = tail([channel, '--json', '--after', /--after (\d+)/.exec(fresh.errors())?.[1] ?? '']);
    await eventually(() => expect(resumed.lines()[0]).toContain('another'), SOON);
  });

  it('reads an archived channel to its end', async () => {
    const channel = await createChannel();
    expect((await parley.api.post(`/api/v1/channels/${channel}/archive`)).status).toBe(200);
    const { seqs, errors, ended } = tail([channel, '--after', '0', '--json']);
    expect(await ended).toBe(0);
    expect(seqs()).toEqual([1, 2]);
    expect(errors()).toContain('the channel is archived; its last event is 2');
  });

  it('follows a remote Parley with the key in PARLEY_KEY', async () => {
    const channel = await createChannel();
    const environment = { PARLEY_KEY: parley.apiKey, DATA_DIR: '/nowhere' };
    const { seqs } = tail([channel, '--after', '0', '--json', '--url', parley.baseUrl], environment);
    await eventually(() => expect(seqs()).toEqual([1]), SOON);
  });

  it('keeps trying from its start, until something that speaks for Parley answers', async () => {
    const channel = await createChannel();
    const page = (status: number, headers = {}): Reply => [status, { 'content-type': 'text/html', ...headers }, '<p>'];
    const json = (status: number, body: object): Reply => [
      status,
      { 'content-type': 'application/json' },
      JSON.stringify(body),
    ];
    const replies = [
      page(404),
      json(403, { message: 'Missing Authentication Token' }),
      page(200),
      // Followed, to where the connection breaks.
      page(302, { location: '/login' }),
      null,
    ];
    const proxy = await startCarelessProxy(parley.baseUrl, () => replies.shift());
    const environment = { PARLEY_KEY: parley.apiKey, DATA_DIR: '/nowhere' };
    const { lines, errors, interrupt, ended } = tail([channel, '--after', '0', '--url', proxy.url], environment);
    await eventually(() => expect(lines()).toHaveLength(1), SOON);
    expect(replies).toEqual([]);
    expect(errors().match(/: no ticket: .*; trying again in [\d.]+ s\n/g)?.length).toBe(4);
    expect(errors()).toMatch(/the connection ended with 1006.*; trying again in/);
    interrupt();
    expect(await ended).toBe(0);
    // However long a proxy asks a client to wait.
    replies.push(page(503, { 'retry-after': '3600' }));
    const patient = tail([channel, '--url', proxy.url], environment);
    await eventually(() => expect(patient.errors()).toContain('trying again in 15.0 s'), SOON);
    await proxy.stop();
  });

  it('waits for a Parley that is not there yet', async () => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const environment = { PARLEY_KEY: parley.apiKey, DATA_DIR: '/nowhere' };
    const { errors, lines } = tail([await createChannel(), '--after', '0', '--url', url], environment);
    await eventually(() => expect(errors()).toContain(`parley: ${url}: no ticket: `), SOON);
    const proxy = await startCarelessProxy(parley.baseUrl, () => undefined, port);
    await eventually(() => expect(lines()).toHaveLength(1), SOON);
    await proxy.stop();
  });

  it('reports mistakes in one line, and fails', async () => {
    const empty = await mkdtemp(join(tmpdir(), 'parley-test-tail-'));
    const channel = await createChannel();
    const wrong: [string[], Record<string, string>, RegExp][] = [
      [[channel], { DATA_DIR: empty }, /^parley: no Parley runs on the data folder .*; run npm start first/],
      [[channel, '--url', parley.baseUrl], { DATA_DIR: empty }, /^parley: a remote Parley requires an API key/],
      [[channel, '--url', parley.baseUrl], { PARLEY_KEY: createApiKey() }, /^parley: Parley refuses: /],
      [[channel, '--url', 'parley'], {}, /^parley: parley is not an http or https URL$/],
      [['nowhere'], { DATA_DIR: parley.dataDir }, /^parley: there is no channel nowhere$/],
      [[channel, '--after', '1e3'], { DATA_DIR: parley.dataDir }, /^parley: --after is a sequence.*"1e3"$/],
    ];
    const said = await Promise.all(
      wrong.map(async ([args, environment]) => {
        const { lines, errors, ended } = tail(args, environment);
        return { exitCode: await ended, lines: lines(), errors: errors().trim().split('\n') };
      }),
    );
    expect(said).toEqual(
      wrong.map(([, , line]) => ({ exitCode: 1, lines: [], errors: [expect.stringMatching(line)] })),
    );
    await rm(empty, { recursive: true });
  });
});
