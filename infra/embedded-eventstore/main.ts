// The event store as a separate process.
// Environment: EVENTSTORE_PORT (2113), HOST (127.0.0.1), DATA_DIR (./data; the store uses its folder `eventstore`),
// EVENTSTORE_INSECURE (false; true serves calls without credentials, as on a real server).
import { once } from 'node:events';
import { join } from 'node:path';
import { messageOf } from '#libs/kernel/faults.ts';
import { CREDENTIALS_FILE } from './credentials.ts';
import { startEmbeddedEventStore } from './server.ts';

const { EVENTSTORE_PORT = '2113', EVENTSTORE_INSECURE = 'false' } = process.env;
const { HOST = '127.0.0.1', DATA_DIR = './data' } = process.env;

function parsePort(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new Error(`EVENTSTORE_PORT must be a port number, not '${text}'`);
}

function parseFlag(text: string): boolean {
  if (text === 'true' || text === 'false') return text === 'true';
  throw new Error(`EVENTSTORE_INSECURE must be true or false, not '${text}'`);
}

// First, so that a signal during the start is not lost.
const stopSignal = Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')]);

try {
  const dataDir = join(DATA_DIR, 'eventstore');
  const port = parsePort(EVENTSTORE_PORT);
  const insecure = parseFlag(EVENTSTORE_INSECURE);
  const store = await startEmbeddedEventStore({ dataDir, host: HOST, port, insecure });
  // Without the password, because container logs keep the output.
  const url = store.url.replace(/:[^:@/]*@/, ':********@');
  const lines = [`event store  ${url}`, `data         ${dataDir}`];
  if (!insecure) lines.push(`credentials  ${join(dataDir, CREDENTIALS_FILE)}`);
  process.stdout.write(`${lines.join('\n')}\n`);
  await stopSignal;
  await store.stop();
  process.exit(0);
} catch (error) {
  process.stderr.write(`event store: ${messageOf(error)}\n`);
  process.exitCode = 1;
}
