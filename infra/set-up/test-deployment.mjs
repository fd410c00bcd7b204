// `npm run test:deployment`: a whole deployment under load, of which everything is killed, paused and replaced.
process.env.DEPLOYMENT_ROUNDS ??= '3';
process.argv.push('test/e2e/deployment-chaos.test.ts');
await import('./test.mjs');
