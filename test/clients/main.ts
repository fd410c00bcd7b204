/**
 * `npm run test:clients [-- python rust go java]`: tries the embedded event store with clients that others wrote, by their
 * own suites where a registry has them. Not part of `npm test`: it needs the registries, and Python 3, Cargo, Go, and a JDK
 * with Maven. Forms that failed here are in test/contract/event-store.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { startEventStoreWorker } from '#infra/embedded-eventstore/index.ts';

import { goSuite, javaProgram, pythonGuide, rustSuite, type Suite } from './suites.ts';

const SUITES: Readonly<Record<string, Suite>> = {
  python: pythonGuide,
  rust: rustSuite,
  go: goSuite,
  java: javaProgram,
};

/** The whole output of each suite, of its last run. */
const OUTPUT = join(import.meta.dirname, '../../node_modules/.cache/parley-clients');
await mkdir(OUTPUT, { recursive: true });

const print = (line: string): boolean => process.stdout.write(`${line}\n`);
const chosen = process.argv.slice(2);
const unknown = chosen.filter((name) => !Object.hasOwn(SUITES, name));
if (unknown.length > 0) {
  print(`no such suite: ${unknown.join(', ')}; the suites are ${Object.keys(SUITES).join(', ')}`);
  process.exit(2);
}

let failures = 0;
for (const [name, suite] of Object.entries(SUITES)) {
  if (chosen.length === 0 || chosen.includes(name)) failures += await run(name, suite);
}
process.exit(failures === 0 ? 0 : 1);

/** On a store of its own: suites list all groups, and read all streams. @returns how many tests failed */
async function run(name: string, suite: Suite): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-clients-'));
  const store = await startEventStoreWorker({ dataDir: join(folder, 'eventstore'), port: 0, insecure: true });
  const counts = { passed: 0, failed: 0, 'left out': 0 };
  try {
    const say = (line: string): boolean => print(`${name}: ${line}`);
    const options = { address: `127.0.0.1:${store.port}`, outputFile: join(OUTPUT, `${name}.txt`), say };
    for await (const { test, outcome, why } of suite(options)) {
      counts[outcome] += 1;
      if (outcome !== 'passed') say(`${outcome} ${test}${why === undefined ? '' : `: ${why}`}`);
    }
    if (counts.passed === 0) throw new Error('no test ran');
  } catch (error) {
    counts.failed += 1;
    print(`${name}: failed: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    await store.stop();
    await rm(folder, { recursive: true, force: true });
  }
  print(
    `${name}: ${counts.passed} passed, ${counts.failed} failed, ${counts['left out']} left out; ${OUTPUT}/${name}.txt`,
  );
  return counts.failed;
}
