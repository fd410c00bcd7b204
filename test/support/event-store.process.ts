/** The child process behind `startTestEventStore({ mode: 'process' })`: data folder and port as arguments. */
import { startEmbeddedEventStore } from '#infra/embedded-eventstore/index.ts';

const [dataDir = '', port = ''] = process.argv.slice(2);
const store = await startEmbeddedEventStore({ dataDir, host: '127.0.0.1', port: Number(port), insecure: true });

process.once('SIGTERM', () => void store.stop().then(() => process.exit(0)));
// The test died without stopping us.
process.once('disconnect', () => process.exit(1));
process.send?.('ready');
