// `npm run test:release [-- part…]`: runs what must hold before a release and is too long for `.ci/run`, one part after
// the other; all of them run even if one fails. Takes hours. `--list` prints the parts; names choose some of them.
import { spawnSync } from 'node:child_process';

/** The commands, by their names as parts. */
const PARTS = {
  ci: ['bash', '.ci/run'],
  ...Object.fromEntries(
    [
      'nightly',
      'package',
      'containers',
      'redis-cluster',
      'deployment',
      'crawls',
      'media',
      'reactors',
      'runs',
      'chat-page',
      'ended-keys',
      'kafka',
      'model-endpoints',
      'python-agent',
      'tool-servers',
      'clients',
      'generators',
      'kubernetes',
      'proxies',
    ].map((name) => [name, ['npm', 'run', `test:${name}`]]),
  ),
  autobahn: ['npm', 'run', 'autobahn'],
};

const names = process.argv.slice(2);
const unknown = names.filter((name) => name !== '--list' && !Object.hasOwn(PARTS, name));
if (unknown.length > 0 || names.includes('--list')) {
  if (unknown.length > 0) process.stderr.write(`parley: no such part: ${unknown.join(', ')}; the parts are\n`);
  for (const [name, command] of Object.entries(PARTS)) process.stdout.write(`${name}: ${command.join(' ')}\n`);
  process.exit(unknown.length > 0 ? 2 : 0);
}

const failed = [];
for (const [name, [program, ...args]] of Object.entries(PARTS)) {
  if (names.length > 0 && !names.includes(name)) continue;
  process.stdout.write(`\n${name}: ${[program, ...args].join(' ')}\n`);
  const { status } = spawnSync(program, args, { stdio: 'inherit', cwd: new URL('..', import.meta.url) });
  if (status !== 0) failed.push(name);
}
process.stdout.write(failed.length === 0 ? '\nall parts passed\n' : `\nfailed: ${failed.join(', ')}\n`);
process.exitCode = failed.length === 0 ? 0 : 1;
