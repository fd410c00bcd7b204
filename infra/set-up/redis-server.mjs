// Makes sure that there is a `redis-server` of version 7 or newer. Some packages start a Redis of the
// system's when they are installed; Parley never uses that one, it only needs the program.
import { spawnSync } from 'node:child_process';
import { say, SetUpError } from './say.mjs';

const OLDEST = 7;

/** Package managers in the order in which they are looked for, with the packages that bring `redis-server`. */
export const packageManagers = [
  {
    command: 'apt-get',
    packages: ['redis-server'],
    install: ['install', '-y', '--no-install-recommends'],
    refresh: ['update'],
  },
  { command: 'dnf', packages: ['redis', 'valkey-compat-redis'], install: ['install', '-y'] },
  { command: 'yum', packages: ['redis'], install: ['install', '-y'] },
  { command: 'apk', packages: ['redis'], install: ['add', '--no-cache'] },
  { command: 'pacman', packages: ['redis', 'valkey'], install: ['-S', '--noconfirm', '--needed'], refresh: ['-Sy'] },
  // Homebrew refuses to run as root.
  { command: 'brew', packages: ['redis'], install: ['install'], asUser: true },
];

export function ensureRedisServer() {
  const found = redisServerVersion();
  if (found !== undefined && found >= OLDEST) return;

  const manager = packageManagers.find(({ command }) => run(command, ['--version']).status !== null);
  const privileges = manager === undefined ? undefined : privilegesFor(manager);
  if (manager === undefined || privileges === undefined) throw new SetUpError(howTo(found, manager));

  for (const name of manager.packages) {
    say(`installing redis-server (${manager.command} package ${name}); this takes a moment …`);
    const installed = installPackage(manager, privileges, name);
    if ((redisServerVersion() ?? 0) >= OLDEST) return;
    if (installed.status !== 0) say(lastLines(installed));
  }
  throw new SetUpError(howTo(redisServerVersion(), manager));
}

/** Major version of the `redis-server` on the PATH, undefined when there is none. */
export function redisServerVersion() {
  const { stdout } = run('redis-server', ['--version']);
  const major = /\bv=(\d+)\./.exec(stdout ?? '')?.[1];
  return major === undefined ? undefined : Number(major);
}

function installPackage(manager, privileges, name) {
  const [command, ...prefix] = [...privileges, manager.command];
  const attempt = () => run(command, [...prefix, ...manager.install, name]);
  const first = attempt();
  if (first.status === 0 || manager.refresh === undefined) return first;
  // The list of packages of a fresh machine is empty or old.
  run(command, [...prefix, ...manager.refresh]);
  return attempt();
}

/** What to put in front of the package manager's command; undefined when we may not install anything. */
function privilegesFor(manager) {
  if (manager.asUser || process.getuid?.() === 0) return [];
  return run('sudo', ['-n', 'true']).status === 0 ? ['sudo', '-n', 'DEBIAN_FRONTEND=noninteractive'] : undefined;
}

function howTo(found, manager) {
  const missing =
    found === undefined
      ? `redis-server ${OLDEST} or newer is needed and was not found.`
      : `redis-server ${OLDEST} or newer is needed; the one on the PATH is version ${found}.`;
  const install =
    manager === undefined || found !== undefined
      ? 'Install it (https://redis.io/docs/latest/operate/oss_and_stack/install/) and put it on the PATH,'
      : `Install it: ${manager.asUser ? '' : 'sudo '}${manager.command} ${manager.install.filter((word) => !/^-(y|-no)/.test(word)).join(' ')} ${manager.packages[0]}`;
  return `${missing}\n${install}\nor start with REDIS_URL=redis://… to use one that runs already.`;
}

function run(command, args) {
  return spawnSync(command, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', HOMEBREW_NO_AUTO_UPDATE: '1' },
  });
}

function lastLines({ stdout, stderr }) {
  return `${stdout ?? ''}\n${stderr ?? ''}`.trim().split('\n').slice(-3).join(' | ');
}
