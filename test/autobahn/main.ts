/**
 * `npm run autobahn [-- --python python2.7 --cases 1.*,2.*]`: runs the public Autobahn test suite against Parley's
 * websocket connections. Not part of `npm test`: it needs Python 2.7 and PyPI. Equal cases against Parley itself are
 * in test/e2e/realtime-connections.test.ts.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { startEchoServer } from './echo-server.ts';
import { installWstest, runWstest } from './wstest.ts';

/** Groups 12 and 13 test compression, which is not offered. */
const ALL = '1.*,2.*,3.*,4.*,5.*,6.*,7.*,9.*,10.*';
/** Passed, or of a case in which any answer passes. */
const FINE = new Set(['OK', 'NON-STRICT', 'INFORMATIONAL']);

/** Messages in tens of thousands of fragments: more than the server accepts, and more than it could be sent. */
const REFUSED = new Set(['9.3.1', '9.3.2', '9.4.1', '9.4.2']);

const { values } = parseArgs({
  options: { python: { type: 'string', default: 'python2.7' }, cases: { type: 'string', default: ALL } },
});

process.exit((await main()) ? 0 : 1);

async function main(): Promise<boolean> {
  try {
    await installWstest(values.python, (line) => console.log(line));
  } catch (error) {
    console.error(`autobahn: ${error instanceof Error ? error.message : String(error)}`);
    return false;
  }
  const folder = await mkdtemp(join(tmpdir(), 'parley-autobahn-'));
  const server = await startEchoServer();
  try {
    const results = await runWstest(values.python, { port: server.port, cases: values.cases.split(','), folder });
    const counts = new Map<string, number>();
    for (const { behavior } of results) counts.set(behavior, (counts.get(behavior) ?? 0) + 1);
    const notFine = results.filter(({ behavior, close }) => !FINE.has(behavior) || !FINE.has(close));
    for (const { id, behavior, close } of notFine) {
      console.log(`${id}: ${behavior}, close ${close}${REFUSED.has(id) ? ' (refused on purpose)' : ''}`);
    }
    const bad = notFine.filter(({ id }) => !REFUSED.has(id));
    console.log(
      `${results.length} cases: ${[...counts].map(([behavior, count]) => `${count} ${behavior}`).join(', ')}`,
    );
    return results.length > 0 && bad.length === 0;
  } finally {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}
