// Builds images of the stores, and the base image, of packages alone, for machines that reach no registry of
// images: Debian's (debootstrap, as root), npm's (the pinned Node) and Maven's (Kafka).
//
//   node test/images/build.mjs [base] [redis] [kafka] [eventstore] [caddy] [parley]      all of them without arguments
import { spawnSync } from 'node:child_process';
import { cpSync, linkSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureDocker, imageExists, imageSize } from './docker.mjs';
import { ensureKafkaBroker } from '../support/kafka/kafka-broker.mjs';
import { root, setUp } from '../../infra/set-up/run.mjs';
import { say, SetUpError, tellErrors } from '../../infra/set-up/say.mjs';
import { installProgram, run } from '../../infra/set-up/system-packages.mjs';
import { BASE_IMAGE, CADDY_IMAGE, DEBIAN_IMAGE, PARLEY_IMAGE, STORE_IMAGES } from './images.mjs';

const here = join(root, 'test/images');

/** Debian's release, and the address of its packages: by default that of debootstrap. */
const { DEBIAN_SUITE = 'bookworm', DEBIAN_MIRROR = '' } = process.env;

/** Files that a container never opens. */
const NOT_NEEDED = ['usr/share/doc', 'usr/share/man', 'usr/share/info', 'usr/share/locale', 'usr/share/lintian'];
/** Also of packages that images add later. */
const EXCLUDE = NOT_NEEDED.map((folder) => `path-exclude=/${folder}/*\n`).join('');

const builders = {
  base: buildBase,
  redis: buildRedis,
  kafka: buildKafka,
  eventstore: buildEventStore,
  caddy: buildCaddy,
  parley: buildParley,
};

/** Builds the named images, and first the base image where it is missing. Quick when nothing has changed. */
export async function buildImages(names = Object.keys(builders)) {
  ensureDocker();
  const node = await setUp({ redis: false });
  const all = names.includes('base') || !imageExists(BASE_IMAGE) ? ['base', ...names] : names;
  for (const name of new Set(all)) {
    const began = Date.now();
    const image = await inTemporaryFolder((context) => builders[name](context, node));
    say(`${image}: ${Math.round(imageSize(image) / 1e6)} MB, built in ${Math.round((Date.now() - began) / 1000)} s`);
  }
}

function buildBase(context, node) {
  if (!imageExists(DEBIAN_IMAGE)) buildDebian(context);
  linkOrCopy(node, join(context, 'node'));
  // Its command is a link to npm/bin/npm-cli.js.
  const npm = dirname(dirname(realpathSync(run('which', ['npm']).stdout.trim())));
  cpSync(npm, join(context, 'npm'), { recursive: true });
  cpSync('/etc/ssl/certs/ca-certificates.crt', join(context, 'certificates'), { dereference: true });
  return buildHere(context, 'base', BASE_IMAGE);
}

function buildDebian(context) {
  ensureDebootstrap();
  const rootfs = join(context, 'rootfs');
  say(`making a root file system of Debian's packages (debootstrap ${DEBIAN_SUITE}); this takes some minutes …`);
  const mirror = DEBIAN_MIRROR === '' ? [] : [DEBIAN_MIRROR];
  must('debootstrap', ['--variant=minbase', '--include=ca-certificates', DEBIAN_SUITE, rootfs, ...mirror]);
  const emptied = ['var/lib/apt/lists', 'var/cache/apt', 'var/log', ...NOT_NEEDED];
  must('find', [...emptied.map((folder) => join(rootfs, folder)), '-type', 'f', '-delete']);
  writeFileSync(join(rootfs, 'etc/dpkg/dpkg.cfg.d/parley'), EXCLUDE);
  must('sh', ['-c', 'tar --create --directory "$1" . | docker import - "$2"', 'sh', rootfs, DEBIAN_IMAGE]);
  rmSync(rootfs, { recursive: true, force: true });
}

function buildRedis(context) {
  return buildHere(context, 'redis', STORE_IMAGES.redis.local);
}

function buildCaddy(context) {
  return buildHere(context, 'caddy', CADDY_IMAGE);
}

async function buildKafka(context) {
  const jars = dirname(await ensureKafkaBroker(root));
  cpSync(jars, join(context, 'jars'), { recursive: true });
  cpSync(join(here, 'kafka-entrypoint.sh'), join(context, 'kafka-entrypoint.sh'));
  return buildHere(context, 'kafka', STORE_IMAGES.kafka.local);
}

function buildEventStore(context) {
  const app = join(context, 'app');
  const paths = [
    'package.json',
    'infra/embedded-eventstore',
    'infra/data-folder',
    'libs/kernel',
    'libs/platform/lifecycle',
  ];
  for (const path of [...paths, 'libs/platform/files']) cpSync(join(root, path), join(app, path), { recursive: true });
  const roots = ['@eventstore/db-client', '@grpc/grpc-js', 'google-protobuf', 'lmdb', 'lru-cache', 'zod'];
  for (const path of packagesBehind(roots)) cpSync(join(root, path), join(app, path), { recursive: true });
  return buildHere(context, 'event-store', STORE_IMAGES.eventstore.local);
}

/** infra/Dockerfile unchanged, but on the images of this machine. */
function buildParley() {
  const revision = run('git', ['-C', root, 'rev-parse', 'HEAD']).stdout.trim();
  return dockerBuild(root, join(root, 'infra/Dockerfile'), PARLEY_IMAGE, {
    RUNTIME_IMAGE: DEBIAN_IMAGE,
    ...(revision !== '' && { REVISION: revision }),
  });
}

/** Folders of packages and of all their dependencies, copied from this installation: nothing is fetched. */
function packagesBehind(names) {
  const { packages } = JSON.parse(readFileSync(join(root, 'node_modules/.package-lock.json'), 'utf8'));
  const found = new Set();
  const add = (name, folder) => {
    const path = packageFolder(packages, name, folder);
    // Optional packages of other platforms are not installed.
    if (path === undefined || found.has(path)) return;
    found.add(path);
    const { dependencies, optionalDependencies } = packages[path];
    for (const next of Object.keys({ ...dependencies, ...optionalDependencies })) add(next, path);
  };
  for (const name of names) add(name, '');
  return found;
}

/** Where Node finds `name` from within `folder`: there, or in the nearest folder above. */
function packageFolder(packages, name, folder) {
  const path = join(folder, 'node_modules', name);
  if (path in packages) return path;
  if (folder === '') return undefined;
  return packageFolder(packages, name, folder.slice(0, Math.max(0, folder.lastIndexOf('node_modules/') - 1)));
}

function buildHere(context, name, tag) {
  return dockerBuild(context, join(here, `${name}.Dockerfile`), tag);
}

/** On the network of the machine, so that a build can fetch from the same addresses. */
function dockerBuild(context, file, tag, variables = {}) {
  const given = Object.entries({ BASE_IMAGE, ...variables }).map(([name, value]) => `--build-arg=${name}=${value}`);
  const args = ['--quiet', '--network=host', ...given, `--file=${file}`, `--tag=${tag}`];
  must('docker', ['build', ...args, context]);
  return tag;
}

function ensureDebootstrap() {
  if (process.getuid?.() !== 0)
    throw new SetUpError('The base image is made by debootstrap, which only root can run: sudo npm run images');
  const isThere = () => run('debootstrap', ['--version']).status === 0;
  if (isThere() || installProgram('debootstrap', { 'apt-get': ['debootstrap'] }, isThere).installed) return;
  throw new SetUpError('debootstrap is needed to make the base image and was not found; Debian and Ubuntu have it.');
}

async function inTemporaryFolder(work) {
  const folder = mkdtempSync(join(tmpdir(), 'parley-image-'));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function linkOrCopy(from, to) {
  mkdirSync(dirname(to), { recursive: true });
  try {
    linkSync(from, to);
  } catch {
    cpSync(from, to);
  }
}

function must(command, args) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 1e9 });
  if (status === 0) return;
  const said = `${stdout ?? ''}\n${stderr ?? ''}\n${error?.message ?? ''}`.trim().split('\n').slice(-15).join('\n');
  throw new SetUpError(`${command} ${args[0]} failed (${status}):\n${said}`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await tellErrors(async () => {
    const asked = process.argv.slice(2);
    const unknown = asked.filter((name) => !(name in builders));
    if (unknown.length > 0)
      throw new SetUpError(`No such image: ${unknown.join(', ')}. There are: ${Object.keys(builders).join(', ')}.`);
    await buildImages(asked.length === 0 ? undefined : asked);
  });
}
