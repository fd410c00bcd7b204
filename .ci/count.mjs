// Counts what `.ci/run` ran. Tests that never ran because their file does not load, or because the test
// runner itself failed, count as failed: a run that proves nothing must not look like one that passed.
// With the argument `again`: prints the failed files that are worth a second run instead, one a line.
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const { RESULTS = '', TESTS_EXIT } = process.env;
/** More files than these fail for a reason that a second run does not take away. */
const MAX_AGAIN = 3;

const read = (name) => {
  try {
    return readFileSync(join(RESULTS, name), 'utf8');
  } catch {
    return '';
  }
};
const lines = (name) => read(name).split('\n').filter(Boolean).length;

/** @returns results by path of the test file; empty if the runner wrote none, or only a part of the report */
function files(name) {
  try {
    return new Map(JSON.parse(read(name)).testResults.map((result) => [result.name, result]));
  } catch {
    return new Map();
  }
}

const count = (results, wanted) =>
  results.flatMap(({ assertionResults }) => assertionResults).filter(({ status }) => status === wanted).length;

const failedFiles = (results) => [...results].filter(([, { status }]) => status === 'failed').map(([path]) => path);

const first = files('tests.json');
const again = files('again.json');

if (process.argv[2] === 'again') {
  const failed = failedFiles(first);
  if (failed.length <= MAX_AGAIN) process.stdout.write(failed.map((path) => `${relative('.', path)}\n`).join(''));
} else {
  const results = [...new Map([...first, ...again]).values()];
  const unloaded = results.filter((result) => result.status === 'failed' && count([result], 'failed') === 0);
  const passed = count(results, 'passed');
  const failed = count(results, 'failed') + unloaded.length;
  const failedTests = failed === 0 && (TESTS_EXIT !== '0' || passed === 0) ? 1 : failed;
  const failures = failedTests + lines('failed');

  const unsteady = failedFiles(first).filter((path) => again.get(path)?.status === 'passed');
  for (const path of unsteady)
    process.stdout.write(`passed only when run again, to be mended: ${relative('.', path)}\n`);
  process.stdout.write(`${passed + lines('passed')} passed, ${failures} failed\n`);
  process.exitCode = failures === 0 ? 0 : 1;
}
