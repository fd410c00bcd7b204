// `npm run test:redis-cluster`: all tests, or those that arguments choose, where each suite that needs a Redis gets a
// cluster of three nodes of its own.
process.env.PARLEY_TEST_REDIS = 'cluster';
await import('./test.mjs');
