/** The child process behind `startTestEventStore({ mode: 'process' })`: data folder, port and keep-alive as arguments. */
import { flushCompileCache } from 'node:module';

import { startEmbeddedEventStore } from '#infra/embedded-eventstore/index.ts';

const [dataDir = '', port = '', keepAlive] = process.argv.slice(2);
const keepAliveMs = keepAlive === undefined ? {} : { keepAliveMs: Number(keepAlive) };
const place = { dataDir, host: '127.0.0.1', port: Number(port) };
const store = await startEmbeddedEventStore({ ...place, insecure: true, ...keepAliveMs });

process.once('SIGTERM', () => void store.stop().then(() => process.exit(0)));
// The test process died without stopping this one.
process.once('disconnect', () => process.exit(1));
process.send?.('ready');
// Most tests kill it, which would leave its modules to be compiled at each start.
flushCompileCache();
