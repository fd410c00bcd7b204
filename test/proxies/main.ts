/**
 * `npm run test:proxies [-- nginx haproxy caddy]`: runs the examples of infra/proxies in front of Parley. Not part of
 * `npm test`: it needs the proxies, in Debian `apt-get install nginx haproxy caddy`.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { freePort } from '#infra/private-redis/free-port.ts';
import { eventually } from '#test/support/eventually.ts';
import { type ParleyProcess, startParleyProcess } from '#test/support/parley-process.ts';

import { checks, type ThroughProxy } from './checks.ts';

const EXAMPLES = join(import.meta.dirname, '../../infra/proxies');

interface Ports {
  readonly proxy: number;
  readonly parley: number;
}

interface Proxy {
  readonly file: string;
  readonly readsWhileSending?: boolean;
  /** The example for other ports and, with a prefix, for a path. */
  configure(example: string, ports: Ports, prefix: Prefix, folder: string): string;
  command(config: string): readonly [program: string, ...args: string[]];
}

/** What the proxy does with the path prefix of its public address. */
type Prefix = 'none' | 'kept' | 'removed';

const PROXIES: Record<string, Proxy> = {
  nginx: {
    file: 'nginx.conf',
    configure: (example, { proxy, parley }, prefix, folder) =>
      `worker_processes 1; error_log stderr; pid ${folder}/pid; events {}
http { access_log off; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/f;
uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
${example
  .replace('listen 80;', `listen 127.0.0.1:${proxy};`)
  .replace('127.0.0.1:8080;', `127.0.0.1:${parley};`)
  .replace('location / {', prefix === 'none' ? 'location / {' : 'location /parley/ {')
  .replace(
    'proxy_pass http://parley;',
    prefix === 'removed' ? 'proxy_pass http://parley/;' : 'proxy_pass http://parley;',
  )}
}`,
    command: (config) => ['nginx', '-c', config, '-g', 'daemon off;'],
  },
  haproxy: {
    file: 'haproxy.cfg',
    configure: (example, { proxy, parley }, prefix) =>
      example
        .replace('bind :80', `bind 127.0.0.1:${proxy}`)
        .replace('parley-1 127.0.0.1:8080', `parley-1 127.0.0.1:${parley}`)
        .replace(
          '\tdefault_backend',
          prefix === 'removed'
            ? '\thttp-request replace-path /parley/(.*) /\\1\n\tdefault_backend'
            : '\tdefault_backend',
        ),
    command: (config) => ['haproxy', '-f', config, '-db'],
  },
  caddy: {
    file: 'Caddyfile',
    readsWhileSending: true,
    configure: (example, { proxy, parley }, prefix) =>
      `{\n\tadmin off\n}\n${example
        .replace('parley.example.com {', `http://127.0.0.1:${proxy} {`)
        .replace('127.0.0.1:8080 {', `127.0.0.1:${parley} {`)
        .replace(
          'handle {',
          { none: 'handle {', kept: 'handle /parley* {', removed: 'handle_path /parley* {' }[prefix],
        )}`,
    command: (config) => ['caddy', 'run', '--config', config, '--adapter', 'caddyfile'],
  },
};

const { positionals } = parseArgs({ allowPositionals: true });
const counts = { passed: 0, failed: 0 };
for (const [name, proxy] of Object.entries(PROXIES)) {
  if (positionals.length > 0 && !positionals.includes(name)) continue;
  for (const prefix of ['none', 'kept', 'removed'] as const) {
    await tryProxy(name, proxy, prefix).catch((error: unknown) => report(`${name}, prefix ${prefix}: set-up`, error));
  }
}
console.log(`proxies: ${counts.passed} passed, ${counts.failed} failed`);
process.exit(counts.failed === 0 ? 0 : 1);

function report(name: string, error: unknown = null): void {
  counts[error === null ? 'passed' : 'failed'] += 1;
  const problem = error instanceof Error ? error.message : String(error);
  console.log(error === null ? `ok     ${name}` : `FAILED ${name}: ${problem}`);
}

async function tryProxy(name: string, proxy: Proxy, prefix: Prefix): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-proxies-'));
  const port = await freePort();
  const baseUrl = `http://127.0.0.1:${port}${prefix === 'none' ? '' : '/parley'}`;
  let parley: ParleyProcess | undefined;
  let running: ChildProcess | undefined;
  try {
    parley = await startParleyProcess({ env: { PUBLIC_URL: baseUrl, TRUST_PROXY: '127.0.0.1' } });
    await parley.ready();
    const example = await readFile(join(EXAMPLES, proxy.file), 'utf8');
    const config = join(folder, proxy.file);
    await writeFile(config, proxy.configure(example, { proxy: port, parley: parley.port }, prefix, folder));
    const [program, ...args] = proxy.command(config);
    const env = { ...process.env, HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder };
    running = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'], cwd: folder, env });
    let output = '';
    running.stderr?.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const failure = once(running, 'exit').then(() => Promise.reject(new Error(`${name} has ended: ${output}`)));
    const isUp = eventually(async () => {
      if ((await fetch(`${baseUrl}/openapi.json`)).status !== 200) throw new Error(`${name} does not answer`);
    });
    await Promise.race([isUp, failure]);
    failure.catch(() => undefined);
    const through: ThroughProxy = {
      baseUrl,
      origin: `http://127.0.0.1:${port}`,
      key: parley.apiKey,
      readsWhileSending: proxy.readsWhileSending ?? false,
    };
    for (const [what, check] of Object.entries(checks)) {
      await check(through).then(
        () => report(`${name}, prefix ${prefix}: ${what}`),
        (error: unknown) => report(`${name}, prefix ${prefix}: ${what}`, error),
      );
    }
  } finally {
    running?.kill('SIGTERM');
    await parley?.stop();
    await rm(folder, { recursive: true, force: true });
  }
}
