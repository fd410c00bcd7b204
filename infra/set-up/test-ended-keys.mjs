// `npm run test:ended-keys`: keys that end while everything that could let them in again fails, for a quarter of an hour.
process.env.ENDED_KEYS_ROUNDS ??= '32';
process.env.ENDED_KEYS_EVENTS ??= '20000';
process.argv.push('test/e2e/ended-keys.test.ts');
await import('./test.mjs');
