// `npm run test:containers`: the tests that use stores, with every store in a container, and those of the image.
// Images come from a registry, or are built here of packages where none answers. Arguments select other tests.
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { buildImages } from './build.mjs';
import { candidatesOf, REAPER_IMAGE, STORE_IMAGES } from './images.mjs';
import { ensureDocker, imageExists, pullImage, removeContainers } from './docker.mjs';
import { root, setUp } from '../../infra/set-up/run.mjs';
import { say, SetUpError, tellErrors } from '../../infra/set-up/say.mjs';

/**
 * The contract tests of the stores, their failures, and one feature that uses them. The other suites use no more of a
 * store than these do: `npm run test:containers -- test/integration/readmodel`.
 */
const TESTS = [
  'test/contract/event-store',
  'test/contract/event-feed',
  'test/integration/eventstore',
  'test/integration/redis',
  'test/integration/kafka',
  'test/integration/keys',
  'test/containers',
];

await tellErrors(async () => {
  const node = await setUp({ redis: true });
  ensureDocker();
  const missing = Object.keys(STORE_IMAGES).filter((kind) => !candidatesOf(kind).some(imageExists));
  const notPulled = missing.filter((kind) => !pull(candidatesOf(kind)[0]));
  for (const kind of notPulled) {
    const { variable } = STORE_IMAGES[kind];
    if (process.env[variable])
      throw new SetUpError(`${variable} names an image that cannot be had: ${process.env[variable]}`);
  }
  if (notPulled.length > 0) await buildImages(notPulled);
  if (!imageExists(REAPER_IMAGE)) pull(REAPER_IMAGE);

  const asked = process.argv.slice(2);
  const runId = randomUUID();
  const { status } = spawnSync(
    node,
    [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--root', root, ...(asked.length === 0 ? TESTS : asked)],
    { stdio: 'inherit', env: { ...process.env, PARLEY_TEST_STORES: 'containers', PARLEY_TEST_RUN: runId } },
  );
  // Without a reaper, containers of a killed run are still there.
  removeContainers(`parley.test=${runId}`);
  process.exitCode = status ?? 1;
});

function pull(image) {
  say(`pulling ${image} …`);
  const pulled = pullImage(image);
  if (!pulled) say(`${image} cannot be had: no registry answers, or it does not have it`);
  return pulled;
}
