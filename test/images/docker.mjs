// Asks Docker, by its command. Nothing here installs or starts it: that is for whoever owns the machine.
import { spawnSync } from 'node:child_process';
import { SetUpError } from '../../infra/set-up/say.mjs';

/** @throws SetUpError that says how to get it, when Docker does not answer */
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

/** @returns whether Docker answers, else why it does not, in one line */
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

/** In bytes, as Docker counts them: unpacked, what it shares with others included. */
export function imageSize(image) {
  return Number(docker(['image', 'inspect', '--format', '{{.Size}}', image]).stdout);
}

/** Several minutes for a large one; where no registry is reached, the answer is there at once. */
export function pullImage(image) {
  return docker(['pull', '--quiet', image], { timeout: 600_000 }).status === 0;
}

/** Those with that label, whatever they do. */
export function removeContainers(label) {
  const { stdout } = docker(['ps', '--all', '--quiet', '--filter', `label=${label}`]);
  const ids = (stdout ?? '').split('\n').filter(Boolean);
  if (ids.length > 0) docker(['rm', '--force', '--volumes', ...ids]);
}

function docker(args, options = {}) {
  return spawnSync('docker', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], ...options });
}
