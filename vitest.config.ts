import { availableParallelism } from 'node:os';

import { configDefaults, defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['{libs,services,infra}/**/*.test.ts', 'test/**/*.test.ts'],
    // Those of images and containers: `npm run test:containers`.
    exclude: [
      ...configDefaults.exclude,
      ...(process.env['PARLEY_TEST_STORES'] === 'containers' ? [] : ['test/containers/**']),
      // Too long for `npm test`: `npm run test:runs`.
      ...(process.env['RUNS_COUNT'] === undefined ? ['test/e2e/runs.test.ts'] : []),
      // Needs Python: `npm run test:model-endpoints`.
      ...(process.env['MODEL_ENDPOINTS'] === undefined ? ['test/e2e/model-endpoints.test.ts'] : []),
    ],
    globals: false,
    globalSetup: 'test/support/stores/global-setup.ts',
    // Processes, not threads: tests change environment variables, signal handlers and flags of the process.
    pool: 'forks',
    // A worker runs many files and keeps the modules that they import: loading those for each file took a tenth of
    // the run. A file therefore leaves nothing behind: it stops what it starts and restores what it replaces.
    isolate: false,
    // One more than there are processors: a third of the time, tests wait for deadlines of stores and brokers.
    maxWorkers: Math.min(4, availableParallelism() + 1),
    // A Redis named by REDIS_URL serves one file at a time.
    fileParallelism: !process.env['REDIS_URL'],
    // Keeps transformed modules for the next run: half of what a run of one slice takes.
    fsModuleCache: true,
    // These only end what hangs: stores are started in hooks, and a busy machine is ten times slower.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    teardownTimeout: 10_000,
    // A condition that holds only at the second try is a defect of the test or of the code.
    retry: 0,
    expect: { requireAssertions: true },
  },
});
