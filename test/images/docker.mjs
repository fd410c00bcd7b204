// Calls Docker by its command line. Nothing here installs or starts it: the owner of the machine does.
import { spawnSync } from 'node:child_process';
import { SetUpError } from '../../infra/set-up/say.mjs';

/** @throws SetUpError with instructions, when Docker does not answer */
export function ensureDocker() {
  const { answers, why } = askDocker();
  if (answers) return;
  throw new SetUpError(
    [
      `Docker is needed and does not answer: ${why}`,
      'With a desktop: start Docker Desktop, OrbStack, Colima or Podman (with its Docker socket).',
      'On Debian or Ubuntu: sudo apt-get install docker.io, then start it (sudo systemctl start docker; without systemd: sudo dockerd, with --storage-driver=vfs where its file system has no overlays).',
      'Another address than the usual one: DOCKER_HOST=unix:///path/docker.sock.',
      'The same tests without it: npm test.',
    ].join('\n'),
  );
}

/** @returns whether Docker answers, else the reason in one line */
export function askDocker() {
  const { status, stdout, stderr, error } = docker(['version', '--format', '{{.Server.Version}}'], { timeout: 20_000 });
  if (status === 0 && (stdout ?? '').trim() !== '') return { answers: true, why: '' };
  const said = (stderr ?? '').trim().split('\n').at(-1);
  return {
    answers: false,
    why: error?.code === 'ENOENT' ? 'there is no command `docker`' : said || String(error ?? status),
  };
}

export function imageExists(image) {
  return docker(['image', 'inspect', image]).status === 0;
}

/** In bytes, as Docker counts them: unpacked, shared layers included. */
export function imageSize(image) {
  return Number(docker(['image', 'inspect', '--format', '{{.Size}}', image]).stdout);
}

/** Takes minutes for a large one; fails at once where no registry is reachable. */
export function pullImage(image) {
  return docker(['pull', '--quiet', image], { timeout: 600_000 }).status === 0;
}

/** All containers with that label, running or not. */
export function removeContainers(label) {
  const { stdout } = docker(['ps', '--all', '--quiet', '--filter', `label=${label}`]);
  const ids = (stdout ?? '').split('\n').filter(Boolean);
  if (ids.length > 0) docker(['rm', '--force', '--volumes', ...ids]);
}

function docker(args, options = {}) {
  return spawnSync('docker', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], ...options });
}
