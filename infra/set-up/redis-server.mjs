// Ensures that `redis-server` 7 or newer is installed. Some packages also start a Redis of the system; Parley never uses
// that server, only the program.
import { SetUpError } from './say.mjs';
import { installCommand, installProgram, run } from './system-packages.mjs';

const OLDEST = 7;

/** Packages that contain `redis-server`, by package manager. */
const PACKAGES = {
  'apt-get': ['redis-server'],
  dnf: ['redis', 'valkey-compat-redis'],
  yum: ['redis'],
  apk: ['redis'],
  pacman: ['redis', 'valkey'],
  brew: ['redis'],
};

export function ensureRedisServer() {
  const found = redisServerVersion();
  if (found !== undefined && found >= OLDEST) return;
  const { installed, manager } = installProgram('redis-server', PACKAGES, () => (redisServerVersion() ?? 0) >= OLDEST);
  if (!installed) throw new SetUpError(howTo(redisServerVersion(), manager));
}

/** Major version of the `redis-server` on the PATH, undefined without one. */
export function redisServerVersion() {
  const { stdout } = run('redis-server', ['--version']);
  const major = /\bv=(\d+)\./.exec(stdout ?? '')?.[1];
  return major === undefined ? undefined : Number(major);
}

function howTo(found, manager) {
  const missing =
    found === undefined
      ? `redis-server ${OLDEST} or newer is needed and was not found.`
      : `redis-server ${OLDEST} or newer is needed; the one on the PATH is version ${found}.`;
  const install =
    manager === undefined || found !== undefined
      ? 'Install it (https://redis.io/docs/latest/operate/oss_and_stack/install/) and put it on the PATH,'
      : `Install it: ${installCommand(manager, PACKAGES[manager.command][0])}`;
  return `${missing}\n${install}\nor start with REDIS_URL=redis://… to use a running one.`;
}
