// Installs programs with the system's package manager, if there is one and the user may use it.
import { spawnSync } from 'node:child_process';
import { say } from './say.mjs';

/** Package managers, in the order of preference. */
export const packageManagers = [
  { command: 'apt-get', install: ['install', '-y', '--no-install-recommends'], refresh: ['update'] },
  { command: 'dnf', install: ['install', '-y'] },
  { command: 'yum', install: ['install', '-y'] },
  { command: 'apk', install: ['add', '--no-cache'] },
  { command: 'pacman', install: ['-S', '--noconfirm', '--needed'], refresh: ['-Sy'] },
  // Homebrew refuses to run as root.
  { command: 'brew', install: ['install'], asUser: true },
];

/**
 * Tries one package after the other until the program is installed.
 *
 * @param what name of the program, for the progress line
 * @param packages packages that contain the program, by the command of the manager
 * @param isThere whether the program can be used
 * @returns whether it is installed, and the manager that was found, if any
 */
export function installProgram(what, packages, isThere) {
  const manager = packageManagers.find(({ command }) => run(command, ['--version']).status !== null);
  const privileges = manager === undefined ? undefined : privilegesFor(manager);
  if (manager === undefined || privileges === undefined) return { installed: false, manager };

  for (const name of packages[manager.command] ?? []) {
    say(`installing ${what} (${manager.command} package ${name}); this takes a moment …`);
    const installed = installPackage(manager, privileges, name);
    if (isThere()) return { installed: true, manager };
    if (installed.status !== 0) say(lastLines(installed));
  }
  return { installed: false, manager };
}

/** The command for a user who may install packages. */
export function installCommand({ command, install, asUser }, name) {
  return `${asUser ? '' : 'sudo '}${command} ${install.filter((word) => !/^-(y|-no)/.test(word)).join(' ')} ${name}`;
}

export function run(command, args) {
  return spawnSync(command, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', HOMEBREW_NO_AUTO_UPDATE: '1' },
  });
}

function installPackage(manager, privileges, name) {
  const [command, ...prefix] = [...privileges, manager.command];
  const attempt = () => run(command, [...prefix, ...manager.install, name]);
  const first = attempt();
  if (first.status === 0 || manager.refresh === undefined) return first;
  // On a fresh machine the package lists are empty or outdated.
  run(command, [...prefix, ...manager.refresh]);
  return attempt();
}

/** Prefix of the package manager's command; undefined if this user may not install packages. */
function privilegesFor(manager) {
  if (manager.asUser || process.getuid?.() === 0) return [];
  return run('sudo', ['-n', 'true']).status === 0 ? ['sudo', '-n', 'DEBIAN_FRONTEND=noninteractive'] : undefined;
}

function lastLines({ stdout, stderr }) {
  return `${stdout ?? ''}\n${stderr ?? ''}`.trim().split('\n').slice(-3).join(' | ');
}
