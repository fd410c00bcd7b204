// Counts what `.ci/run` ran. Tests that never ran because their file does not load, or because the test
// runner itself failed, count as failed: a run that proves nothing must not look like one that passed.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const { RESULTS = '', TESTS_EXIT } = process.env;

function lines(name) {
  try {
    return readFileSync(join(RESULTS, name), 'utf8').split('\n').filter(Boolean).length;
  } catch {
    return 0;
  }
}

function tests() {
  try {
    const report = JSON.parse(readFileSync(join(RESULTS, 'tests.json'), 'utf8'));
    const unloaded = report.testResults.filter(
      ({ status, assertionResults }) =>
        status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
    );
    return { passed: report.numPassedTests, failed: report.numFailedTests + unloaded.length };
  } catch {
    return { passed: 0, failed: 1 };
  }
}

const { passed, failed } = tests();
const failedTests = failed === 0 && TESTS_EXIT !== '0' ? 1 : failed;
const failures = failedTests + lines('failed');
process.stdout.write(`${passed + lines('passed')} passed, ${failures} failed\n`);
process.exitCode = failures === 0 ? 0 : 1;
