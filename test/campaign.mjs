// `npm run test:<campaign>`: `npm test` with the environment and files of a campaign. Campaigns are too long for
// `.ci/run`. Variables that are set already keep their values; further arguments go to vitest.
const CAMPAIGNS = {
  // Workers are killed while 20 crawls run, and while 200 reports are written.
  crawls: { env: { CRAWLS: '20', CRAWLS_REPORTS: '10', CRAWLS_ROUNDS: '20' }, args: ['test/e2e/crawls.test.ts'] },
  // A whole deployment under load: its processes are killed, paused and replaced. Also relays on three brokers.
  deployment: {
    env: { DEPLOYMENT_ROUNDS: '4' },
    args: ['test/e2e/deployment-chaos.test.ts', 'test/e2e/relay-processes.test.ts', '--no-file-parallelism'],
  },
  // Keys end while every mechanism that could accept them again fails; takes a quarter of an hour.
  'ended-keys': {
    env: { ENDED_KEYS_ROUNDS: '32', ENDED_KEYS_EVENTS: '20000' },
    args: ['test/e2e/ended-keys.test.ts'],
  },
  // Workers and the S3 server are killed while 200 media items run and files are swept.
  media: {
    env: { MEDIA_ITEMS: '200', MEDIA_ROUNDS: '20', MEDIA_STORE: 's3', HOSTILE_PDFS: '24' },
    args: ['test/e2e/media.test.ts', 'test/e2e/hostile-media.test.ts'],
  },
  // Agents answer through LiteLLM, a proxy that translates to other APIs. Needs Python and, the first time, PyPI.
  'model-endpoints': { env: { MODEL_ENDPOINTS: '1' }, args: ['test/e2e/model-endpoints.test.ts'] },
  // All tests, or those that arguments choose, with ten times the rounds of randomized tests.
  nightly: { env: { PARLEY_TEST_ROUNDS: '10', RUNS_COUNT: '12' }, args: [] },
  // Workers are killed, paused and replaced, and the event store too, while 300 processes of several steps run.
  reactors: { env: { REACTORS_JOBS: '300', REACTORS_ROUNDS: '6' }, args: ['test/e2e/reactors.test.ts'] },
  // All tests, or those that arguments choose; each suite that needs a Redis of its own gets a cluster of three nodes.
  'redis-cluster': { env: { PARLEY_TEST_REDIS: 'cluster' }, args: [] },
  // Four workers are killed, paused and replaced while 200 runs with three tool calls each answer questions.
  runs: { env: { RUNS_COUNT: '200', RUNS_ROUNDS: '8', RUNS_WORKERS: '4' }, args: ['test/e2e/runs.test.ts'] },
};

const [name = ''] = process.argv.splice(2, 1);
const campaign = Object.hasOwn(CAMPAIGNS, name) ? CAMPAIGNS[name] : undefined;
if (campaign === undefined) {
  process.stderr.write(`parley: no campaign ${name}; there are: ${Object.keys(CAMPAIGNS).join(', ')}\n`);
  process.exit(2);
}
for (const [variable, value] of Object.entries(campaign.env)) process.env[variable] ??= value;
process.argv.splice(2, 0, ...campaign.args);
await import('../infra/set-up/test.mjs');
