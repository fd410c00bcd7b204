import { configDefaults, defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['{libs,services,infra}/**/*.test.ts', 'test/**/*.test.ts'],
    // Those of images and containers: `npm run test:containers`.
    exclude: [
      ...configDefaults.exclude,
      ...(process.env['PARLEY_TEST_STORES'] === 'containers' ? [] : ['test/containers/**']),
    ],
    globals: false,
    globalSetup: 'test/support/stores/global-setup.ts',
    // Processes, not threads: tests start and kill stores, and one file must not see another's signals.
    pool: 'forks',
    maxWorkers: 2,
    // Files take turns with a Redis that somebody has named.
    fileParallelism: !process.env['REDIS_URL'],
    // These only end what hangs: stores are started in hooks, and a busy machine is ten times slower.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    teardownTimeout: 10_000,
    // A condition that holds only at the second try is a defect of the test or of the code.
    retry: 0,
    expect: { requireAssertions: true },
  },
});
