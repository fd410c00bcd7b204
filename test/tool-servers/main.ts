/**
 * `npm run test:tool-servers [-- --python python3]`: tries agents' tool servers against code that others wrote. Not part of
 * `npm test`: it needs npm, PyPI and a Python 3.10. Forms that failed here are in test/integration/mcp.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { join } from 'node:path';

import { createFetcher } from '#libs/platform/fetch/index.ts';
import { type RemoteResult, toolServers } from '#libs/platform/mcp/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { npmPackage, pythonWith } from '#test/support/foreign-packages.ts';
import { onFreePort } from '#test/support/on-free-port.ts';

import { runConformance } from './conformance.ts';

const EVERYTHING = '2026.8.31';
const PYTHON_VERSIONS = ['1.30.0', '2.3.0'];
/** The official SDK for TypeScript, of both of its major versions. */
const SDKS = [
  ['@modelcontextprotocol/sdk', '1.32.2'],
  ['@modelcontextprotocol/node', '2.1.2'],
] as const;

/** What servers authorize by: Parley sends it with each call. */
const META = { 'parley/user_id': 'ada', 'parley/channel_id': 'channel-1', 'parley/run_id': 'run-1' };
const KNOWS_CALLER = new RegExp(
  Object.entries(META)
    .map(([name, value]) => `(?=.*"${name}": ?"${value}")`)
    .join(''),
  's',
);

const { values } = parseArgs({ options: { python: { type: 'string', default: 'python3' } } });
const say = (line: string): void => console.log(line);
const counts = { passed: 0, failed: 0 };

try {
  await tryEverything();
  for (const [name, version] of SDKS) await trySdk(name, version);
  for (const version of PYTHON_VERSIONS) await tryPython(version);
  for await (const { name, problem } of runConformance(say)) report(name, problem);
} catch (error) {
  report('set-up', error instanceof Error ? error.message : String(error));
}
say(`tool servers: ${counts.passed} passed, ${counts.failed} failed`);
process.exit(counts.failed === 0 ? 0 : 1);

function report(name: string, problem: string | null): void {
  counts[problem === null ? 'passed' : 'failed'] += 1;
  say(`${problem === null ? 'ok    ' : 'FAILED'} ${name}${problem === null ? '' : `: ${problem}`}`);
}

interface Expected {
  readonly leftOut?: readonly string[];
  /** Arguments of calls, and patterns of what is answered. */
  readonly calls: Readonly<Record<string, readonly [input: object, text: RegExp, isError?: boolean]>>;
}

async function tryEverything(): Promise<void> {
  const folder = await npmPackage('@modelcontextprotocol/server-everything', EVERYTHING, say);
  for (const [mode, path] of [
    ['streamableHttp', 'mcp'],
    ['sse', 'sse'],
  ] as const) {
    const start = (port: number) => {
      const env = { ...process.env, PORT: String(port) };
      return spawn(process.execPath, [join(folder, 'dist/index.js'), mode], { env, stdio: 'ignore' });
    };
    await tryServer(`server-everything ${EVERYTHING}, ${mode}`, path, start, {
      leftOut: ['simulate-research-query'],
      calls: {
        echo: [{ message: 'hello' }, /hello/],
        'get-sum': [{ a: 2, b: 3 }, /5/],
        'get-tiny-image': [{}, /\[image, image\/png, \d+ bytes\]/],
        'get-structured-content': [{ location: 'New York' }, /temperature/],
        'get-resource-links': [{ count: 2 }, /\[link: .*:\/\//],
        'get-resource-reference': [{ resourceType: 'Text', resourceId: 1 }, /\[resource, [^\]]+\]\n\S+/],
        'get-annotated-message': [{ messageType: 'error', includeImage: true }, /Error.*\n?.*\[image/s],
        'trigger-long-running-operation': [{ duration: 1, steps: 4 }, /completed/],
        'get-sum-wrong': [{}, /not found|unknown/i, true],
      },
    });
  }
}

async function trySdk(name: string, version: string): Promise<void> {
  const folder = await npmPackage(name, version, say);
  const start = (port: number) =>
    spawn(process.execPath, [join(import.meta.dirname, 'server.mjs'), String(port), folder], { stdio: 'ignore' });
  await tryServer(`${name} ${version}`, 'mcp', start, { calls: { caller: [{}, KNOWS_CALLER] } });
}

async function tryPython(version: string): Promise<void> {
  const python = await pythonWith('mcp', version, values.python, say);
  const forms = [
    ['streamable-http', 'no', 'no'],
    ['streamable-http', 'no', 'yes'],
    ['streamable-http', 'yes', 'no'],
    ['streamable-http', 'yes', 'yes'],
    ['sse', 'no', 'no'],
  ] as const;
  for (const [transport, stateless, json] of forms) {
    const args = [transport, stateless, json];
    const start = (port: number) =>
      spawn(python, [join(import.meta.dirname, 'server.py'), String(port), ...args], { stdio: 'ignore' });
    const form = `${transport}${stateless === 'yes' ? ', stateless' : ''}${json === 'yes' ? ', JSON' : ''}`;
    await tryServer(`Python mcp ${version}, ${form}`, transport === 'sse' ? 'sse' : 'mcp', start, {
      calls: {
        find: [{ id: '7' }, /"id":\s*"7"/],
        // Version 2 keeps the message to itself.
        fail: [{}, /no such order|Error executing tool fail/, true],
        picture: [{}, /\[image, image\/png, 3 bytes\]/],
        slow: [{}, /done/],
        caller: [{}, KNOWS_CALLER],
        absent: [{}, /unknown tool/i, true],
      },
    });
  }
}

async function tryServer(
  name: string,
  path: string,
  start: (port: number) => ChildProcess,
  { leftOut = [], calls }: Expected,
): Promise<void> {
  let server: ChildProcess | undefined;
  try {
    const port = await onFreePort(async (free) => {
      server = start(free);
      await eventually(() => listens(free), { everyMs: 100, timeoutMs: 30_000 });
      return free;
    });
    const metrics = createMetrics({ processMetrics: false });
    const fetcher = createFetcher({ metrics, allowHosts: [{ host: '127.0.0.1', port }] });
    const access = { url: `http://127.0.0.1:${port}/${path}`, token: null };
    for (const firstEra of path === 'mcp' ? (['initialized', 'stateless'] as const) : ['initialized' as const]) {
      const servers = toolServers(fetcher, { timeoutMs: 20_000, maxBytes: 8 * 1024 * 1024, firstEra });
      const never = new AbortController().signal;
      const found = await servers.list(access, never);
      const names = found.leftOut.map((one) => one.name);
      const isListed = found.tools.length > 0 && isDeepStrictEqual(names, [...leftOut]);
      report(`${name} (${firstEra} first): list of ${found.tools.length}`, isListed ? null : JSON.stringify(found));
      for (const [tool, [input, text, isError = false]] of Object.entries(calls)) {
        const { input: schema = { type: 'object' } } = found.tools.find((one) => one.name === tool) ?? {};
        const call = { name: tool, input: { ...input }, schema, meta: META };
        const result = await servers.call(access, call, never).catch((error: unknown) => String(error));
        report(`${name} (${firstEra} first): ${tool}`, problemOf(result, text, isError));
      }
    }
    await fetcher.close();
  } catch (error) {
    report(name, String(error));
  } finally {
    if (server?.exitCode === null) {
      server.kill('SIGKILL');
      await once(server, 'exit');
    }
  }
}

function problemOf(result: RemoteResult | string, text: RegExp, isError: boolean): string | null {
  const isRight = typeof result !== 'string' && result.isError === isError && text.test(result.text);
  return isRight ? null : JSON.stringify(result).slice(0, 500);
}

async function listens(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/`).then(
    async (response) => {
      await response.body?.cancel();
      return true;
    },
    () => false,
  );
}
