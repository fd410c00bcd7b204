// `npm run test:deployment`: a whole deployment under load, of which everything is killed, paused and replaced; and
// relays on three brokers.
process.env.DEPLOYMENT_ROUNDS ??= '3';
process.argv.push('test/e2e/deployment-chaos.test.ts', 'test/e2e/relay-processes.test.ts', '--no-file-parallelism');
await import('./test.mjs');
