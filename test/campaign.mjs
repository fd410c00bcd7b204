// `npm run test:<campaign>`: `npm test` with the environment and files of a campaign: those of `test/campaigns`, which are
// too long for `npm test` and `.ci/run`, and tests elsewhere that `IN_CAMPAIGN` lengthens. Variables that are set already
// keep their values; further arguments go to vitest.
const CAMPAIGNS = {
  // The chat page of docs/your-users.md in Chromium: reloads, tabs, a killed server, cancellation, removal.
  'chat-page': { env: {}, args: ['test/campaigns/chat-page.test.ts'] },
  // Workers are killed while 20 crawls run, and while 200 reports are written.
  crawls: { env: { CRAWLS: '20', CRAWLS_REPORTS: '10', CRAWLS_ROUNDS: '20' }, args: ['test/campaigns/crawls.test.ts'] },
  // A whole deployment under load: its processes are killed, paused and replaced. Also relays on three brokers, and a
  // standalone whose private Redis is killed, too.
  deployment: {
    env: { DEPLOYMENT_ROUNDS: '4', CHAOS_ROUNDS: '30' },
    args: [
      'test/campaigns/deployment-chaos.test.ts',
      'test/e2e/chaos.test.ts',
      'test/campaigns/relay-processes.test.ts',
      '--no-file-parallelism',
    ],
  },
  // Keys end while every mechanism that could accept them again fails; takes a quarter of an hour.
  'ended-keys': {
    env: { ENDED_KEYS_ROUNDS: '32', ENDED_KEYS_EVENTS: '20000' },
    args: ['test/campaigns/ended-keys.test.ts'],
  },
  // Brokers, relays and projectors over Kafka are killed, paused and replaced; all that is tested on a broker runs.
  kafka: {
    env: {},
    args: [
      'test/campaigns/kafka-away.test.ts',
      'test/campaigns/shared-projectors.test.ts',
      'test/integration/kafka',
      'test/contract/event-feed/kafka.test.ts',
    ],
  },
  // Workers and the S3 server are killed while 200 media items run and files are swept.
  media: {
    env: { MEDIA_ITEMS: '200', MEDIA_ROUNDS: '20', MEDIA_STORE: 's3', HOSTILE_PDFS: '24' },
    args: ['test/campaigns/media.test.ts', 'test/campaigns/hostile-media.test.ts'],
  },
  // Agents answer through LiteLLM, a proxy that translates to other APIs. Needs Python and, the first time, PyPI.
  'model-endpoints': { env: { MODEL_ENDPOINTS: '1' }, args: ['test/campaigns/model-endpoints.test.ts'] },
  // All tests and short campaigns, or those that arguments choose, with ten times the rounds of randomized tests.
  nightly: { env: { PARLEY_TEST_ROUNDS: '10', RUNS_COUNT: '12' }, args: [] },
  // A reader of docs/python-agent.md saves and runs all of it. Needs Python and PyPI.
  'python-agent': { env: { PYTHON_AGENT: '1' }, args: ['test/campaigns/python-agent.test.ts'] },
  // Workers are killed, paused and replaced, and the event store too, while 300 processes of several steps run.
  reactors: { env: { REACTORS_JOBS: '300', REACTORS_ROUNDS: '6' }, args: ['test/campaigns/reactors.test.ts'] },
  // All tests, or those that arguments choose; each suite that needs a Redis of its own gets a cluster of three nodes.
  'redis-cluster': { env: { PARLEY_TEST_REDIS: 'cluster', PARLEY_TEST_CAMPAIGN: '' }, args: [] },
  // Four workers are killed, paused and replaced while 200 runs with three tool calls each answer questions.
  runs: { env: { RUNS_COUNT: '200', RUNS_ROUNDS: '8', RUNS_WORKERS: '4' }, args: ['test/campaigns/runs.test.ts'] },
};

const [name = ''] = process.argv.splice(2, 1);
const campaign = Object.hasOwn(CAMPAIGNS, name) ? CAMPAIGNS[name] : undefined;
if (campaign === undefined) {
  process.stderr.write(`parley: no campaign ${name}; there are: ${Object.keys(CAMPAIGNS).join(', ')}\n`);
  process.exit(2);
}
for (const [variable, value] of Object.entries({ PARLEY_TEST_CAMPAIGN: '1', ...campaign.env })) {
  process.env[variable] ??= value;
}
process.argv.splice(2, 0, ...campaign.args);
await import('../infra/set-up/test.mjs');
