// `npm run test:redis-cluster`: the tests with Redis, each suite on a cluster of three nodes of its own.
process.env.PARLEY_TEST_REDIS = 'cluster';
if (process.argv.length === 2) process.argv.push('test/integration', 'test/contract');
await import('./test.mjs');
