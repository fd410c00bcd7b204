// Counts what `.ci/run` ran. Tests that never ran because their file does not load, or because the test
// runner itself failed, count as failed: a run that proves nothing must not look like one that passed.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const { RESULTS = '', TESTS_EXIT } = process.env;

const read = (name) => {
  try {
    return readFileSync(join(RESULTS, name), 'utf8');
  } catch {
    return '';
  }
};
const lines = (name) => read(name).split('\n').filter(Boolean).length;

/** @returns results of the test files; none if the runner wrote none, or only a part of the report */
function files() {
  try {
    return JSON.parse(read('tests.json')).testResults;
  } catch {
    return [];
  }
}

const count = (results, wanted) =>
  results.flatMap(({ assertionResults }) => assertionResults).filter(({ status }) => status === wanted).length;

const results = files();
const unloaded = results.filter((result) => result.status === 'failed' && count([result], 'failed') === 0);
const passed = count(results, 'passed');
const failed = count(results, 'failed') + unloaded.length;
const failedTests = failed === 0 && (TESTS_EXIT !== '0' || passed === 0) ? 1 : failed;
const failures = failedTests + lines('failed');

process.stdout.write(`${passed + lines('passed')} passed, ${failures} failed\n`);
process.exitCode = failures === 0 ? 0 : 1;
