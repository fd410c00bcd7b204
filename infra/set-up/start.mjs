// `npm start`: installs what is missing, then runs all of Parley in one process.
import { join } from 'node:path';
import { become, root, setUp } from './run.mjs';
import { tellErrors } from './say.mjs';

/**
 * A larger young generation, and a collector without helper threads, which compete with the event loop for the cores,
 * reduce the p99 latency. docs/performance.md has the measurements.
 */
const DEFAULT_NODE_FLAGS = '--max-semi-space-size=64 --single-threaded-gc';

await tellErrors(async () => {
  const node = await setUp({ redis: !process.env.REDIS_URL, development: false });
  const flags = (process.env.PARLEY_NODE_FLAGS || DEFAULT_NODE_FLAGS).split(/\s+/).filter(Boolean);
  become(node, [...flags, join(root, 'services/standalone/main.ts'), ...process.argv.slice(2)]);
});
