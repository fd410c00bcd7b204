import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { BaseSequencer, type TestSpecification } from 'vitest/node';

import { findS3Server, isS3ServerBuilt } from '#test/support/s3/versitygw.mjs';

/**
 * Files of more than ten seconds, the longest first. A long file that begins last leaves all processors but one idle, and
 * in a new clone, Vitest knows nothing of a file but its size.
 */
const LONGEST = [
  'test/integration/set-up/start.test.ts',
  'test/e2e/documents.test.ts',
  'test/e2e/lost-log.test.ts',
  'test/integration/testing/package.test.ts',
  'test/integration/cli/tail.test.ts',
  'test/integration/kafka/relay.test.ts',
  'test/e2e/store-away.test.ts',
  'test/contract/event-feed/kafka.test.ts',
  'libs/features/media/file-inspector.test.ts',
  'test/e2e/chaos.test.ts',
  'test/integration/eventstore/faults.test.ts',
  'test/integration/answering/run/endpoints.test.ts',
  'test/integration/media/uploads.test.ts',
  'test/integration/reactors/reactors.test.ts',
  'test/integration/knowledge/vectors.test.ts',
  'test/integration/cli/import/import.test.ts',
  'test/integration/media/falsified-bucket.test.ts',
  'test/integration/realtime/socket-sessions.test.ts',
  'test/integration/cli/cli.test.ts',
  'test/integration/testing/start-parley.test.ts',
  'test/contract/blobs/s3.test.ts',
  'test/e2e/browser.test.ts',
  'test/integration/history/as-of.properties.test.ts',
  'test/e2e/dying-gateway.test.ts',
  'test/integration/standalone/standalone.test.ts',
  'test/e2e/realtime-sequences.test.ts',
  'test/integration/redis/cluster-failures.test.ts',
  'test/e2e/realtime-refusals.test.ts',
];

/** Runs the longest files first, the others as Vitest does: by their last duration, or by their size. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root } = this.ctx.config;
    const missing = LONGEST.filter((path) => !existsSync(join(root, path)));
    if (missing.length > 0) throw new Error(`test/support/longest-first.ts names missing files: ${missing.join(', ')}`);
    const late = filesThatWaitForABuild(files);
    const places = new Map(LONGEST.map((path, place) => [join(root, path), place]));
    const placeOf = ({ moduleId }: TestSpecification): number =>
      late.has(moduleId) ? LONGEST.length + 1 : (places.get(moduleId) ?? LONGEST.length);
    return (await super.sort(files)).sort((one, other) => placeOf(one) - placeOf(other));
  }
}

/** Begins to build the S3 server, if it is needed and there is none yet: the files that use it come last. */
function filesThatWaitForABuild(files: readonly TestSpecification[]): ReadonlySet<string> {
  if (isS3ServerBuilt()) return new Set();
  const waiting = files.filter(({ moduleId }) => readFileSync(moduleId, 'utf8').includes('versitygw.mjs'));
  // The files that need the server report the failure.
  if (waiting.length > 0) findS3Server().catch(() => undefined);
  return new Set(waiting.map(({ moduleId }) => moduleId));
}
