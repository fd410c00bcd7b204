import { availableParallelism, totalmem } from 'node:os';
import { configDefaults, defineConfig } from 'vitest/config';

import { LongestFirst } from './test/support/longest-first.ts';

/** In bytes; a container may have less than its host. */
const memory = Math.min(totalmem(), process.constrainedMemory() || Infinity);

export default defineConfig({
  test: {
    include: ['{libs,services,infra}/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: [
      ...configDefaults.exclude,
      // Of images and containers: `npm run test:containers`.
      ...(process.env['PARLEY_TEST_STORES'] === 'containers' ? [] : ['test/containers/**']),
      // Too long for `npm test`: `npm run test:<campaign>`.
      ...(process.env['PARLEY_TEST_CAMPAIGN'] === '1' ? [] : ['test/campaigns/**']),
      // Needs Python: `npm run test:model-endpoints`.
      ...(process.env['MODEL_ENDPOINTS'] === undefined ? ['test/campaigns/model-endpoints.test.ts'] : []),
      // As well: `npm run test:python-agent`.
      ...(process.env['PYTHON_AGENT'] === undefined ? ['test/campaigns/python-agent.test.ts'] : []),
    ],
    globals: false,
    globalSetup: 'test/support/stores/global-setup.ts',
    setupFiles: ['test/support/seed.ts'],
    // Processes, not threads: tests change environment variables, signal handlers and flags of the process.
    pool: 'forks',
    // A worker runs many files and keeps the modules that they import: loading those for each file took a tenth of
    // the run. A file therefore leaves nothing behind: it stops what it starts and restores what it replaces.
    isolate: false,
    // Tests wait a third of the time, so two processors serve four workers. A worker grows to 1.5 GiB.
    maxWorkers: Math.min(availableParallelism() + 2, memory < 12 * 1024 ** 3 ? 3 : 4),
    // A Redis named by REDIS_URL serves one file at a time.
    fileParallelism: !process.env['REDIS_URL'],
    sequence: { sequencer: LongestFirst },
    // Node loads TypeScript as it does for users. Transforming and running it by Vite took a fifth of the processor time;
    // it remains for an older Node, by which an editor may start Vitest.
    experimental: { viteModuleRunner: !process.features.typescript, nodeLoader: false },
    // These, like the deadline of `eventually`, only end what hangs: a busy machine is ten times slower.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    teardownTimeout: 10_000,
    // A condition that holds only at the second try is a defect of the test or of the code.
    retry: 0,
    expect: { requireAssertions: true },
  },
});
