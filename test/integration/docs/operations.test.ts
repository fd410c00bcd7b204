import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';

import { readSourceTree } from '#test/architecture/source-tree.ts';

const root = join(import.meta.dirname, '../../..');

/** Names of the metrics in the source, with the common prefix. */
function metricsOf(texts: Iterable<string>): Set<string> {
  const names = [...texts].flatMap((text) =>
    [
      ...text.matchAll(
        /\b(?:(?:counter|gauge|observedGauge|observedCounter)\(|name:)\s*'([a-z_]+)',\s*(?:help:)?\s*'/g,
      ),
    ].map(([, name]) => `parley_${name}`),
  );
  return new Set([...names, 'parley_http_request_duration_seconds', 'parley_build_info']);
}

it('docs/operations.md documents each metric, and no other', async () => {
  const sources = [...readSourceTree(root).values()].filter(
    ({ path }) => /^(libs|services)\//.test(path) && !path.endsWith('.test.ts'),
  );
  const made = metricsOf(sources.map(({ text }) => text));
  expect(made.size).toBeGreaterThan(15);
  const text = await readFile(join(root, 'docs/operations.md'), 'utf8');
  const documented = new Set(text.match(/\bparley_[a-z_]+\b/g));
  expect([...made].filter((name) => !documented.has(name))).toEqual([]);
  expect([...documented].filter((name) => !made.has(name))).toEqual([]);
});
