/** `npm run bench [-- row… --runs 5 --quick --quiet-wait 5 --data folder --beside version --json file]`: see docs/performance.md. */
import { writeFile } from 'node:fs/promises';
import { availableParallelism, cpus } from 'node:os';
import { parseArgs } from 'node:util';

import { appendBenchmarks } from './append.benchmark.ts';
import { applyBenchmark, applyChannelsBenchmark } from './apply.benchmark.ts';
import type { Scale } from './benchmark.ts';
import { busyChannelsBenchmark } from './busy-channels.benchmark.ts';
import { crawlBenchmarks } from './crawl.benchmark.ts';
import { printExtractTable } from './extract-table.ts';
import { fanOutBenchmarks, fanOutTickBenchmark } from './fan-out.benchmark.ts';
import { fanOutServersBenchmark } from './fan-out-servers.benchmark.ts';
import { besideFormerVersion } from './former-version.ts';
import { getBenchmarks } from './get.benchmark.ts';
import { growthBenchmark } from './growth.benchmark.ts';
import { handshakeBenchmark } from './handshake.benchmark.ts';
import { importBenchmark } from './import.benchmark.ts';
import { listReactionsBenchmark } from './list-reactions.benchmark.ts';
import { mediaBenchmark } from './media.benchmark.ts';
import { membersBenchmark } from './members.benchmark.ts';
import { memoryBenchmark } from './memory.benchmark.ts';
import { participantsBenchmark } from './participants.benchmark.ts';
import { httpCommandBenchmarks } from './commands-over-http.benchmark.ts';
import { postsMemoryBenchmark } from './posts-memory.benchmark.ts';
import { postAgentBenchmark } from './post-agent.benchmark.ts';
import { postgresBenchmarks } from './postgres.benchmark.ts';
import { projectorsBenchmark } from './projectors.benchmark.ts';
import { rebuildBenchmark } from './rebuild.benchmark.ts';
import { redisMemoryBenchmark } from './redis-memory.benchmark.ts';
import { relayBenchmark } from './relay.benchmark.ts';
import { refusalsBenchmark } from './refusals.benchmark.ts';
import { type BenchmarkResult, runBenchmark } from './run.ts';
import { runBenchmarks } from './runs.benchmark.ts';
import { searchBenchmark } from './search.benchmark.ts';
import { sharesBenchmarks } from './shares.benchmark.ts';
import { streamedPartsBenchmark } from './streamed-parts.benchmark.ts';
import { renderTable } from './table.ts';

const BENCHMARKS = [
  ...postgresBenchmarks,
  postAgentBenchmark,
  ...getBenchmarks,
  listReactionsBenchmark,
  membersBenchmark,
  refusalsBenchmark,
  ...httpCommandBenchmarks,
  ...appendBenchmarks,
  participantsBenchmark,
  streamedPartsBenchmark,
  applyBenchmark,
  applyChannelsBenchmark,
  rebuildBenchmark,
  relayBenchmark,
  projectorsBenchmark,
  importBenchmark,
  redisMemoryBenchmark,
  growthBenchmark,
  ...fanOutBenchmarks,
  fanOutTickBenchmark,
  fanOutServersBenchmark,
  memoryBenchmark,
  postsMemoryBenchmark,
  busyChannelsBenchmark,
  handshakeBenchmark,
  ...crawlBenchmarks,
  searchBenchmark,
  mediaBenchmark,
  ...runBenchmarks,
  ...sharesBenchmarks,
];

const FULL: Omit<Scale, 'data'> = { seconds: 5, warmUpSeconds: 3, amount: 1 };
const QUICK: Omit<Scale, 'data'> = { seconds: 2, warmUpSeconds: 1.5, amount: 0.25 };

const USAGE = `npm run bench -- [row…] [options]

  row…                  rows of the table to measure, or a group of them, such as postgres; default: all
  --runs <number>       runs of each row, whose median counts; default: 5, with --quick 3
  --quick               shorter runs
  --quiet-wait <s>      seconds to wait for a quiet machine before each run; default: 5
  --data <folder>       a public collection that the row uses, such as Cranfield for search
  --beside <version>    measures each row here and in another version, a commit or the folder of a checkout, in turn
  --json <file>         also write the results as JSON
  --list                print the names of the rows`;

const { values, positionals } = argumentsOf(() =>
  parseArgs({
    allowPositionals: true,
    options: {
      runs: { type: 'string' },
      quick: { type: 'boolean', default: false },
      'quiet-wait': { type: 'string', default: '5' },
      data: { type: 'string' },
      beside: { type: 'string' },
      json: { type: 'string' },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  }),
);
if (values.help) {
  console.log(USAGE);
  process.exit(0);
}

/** Ends the process for options that there are not. */
function argumentsOf<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
    process.exit(1);
  }
}

// Its table has a line for each type of page, and no runs.
if (positionals[0] === 'extract') {
  if (values.data === undefined) throw new RangeError('extract needs --data <folder>: see docs/performance.md');
  await printExtractTable(values.data);
  process.exit(0);
}

const names = BENCHMARKS.map(({ name }) => name);
/** The row of that name, or the rows of the group. */
const rowsOf = (name: string) => (names.includes(name) ? [name] : names.filter((one) => one.startsWith(`${name}-`)));
const unknown = positionals.filter((name) => rowsOf(name).length === 0);
if (values.list || unknown.length > 0) {
  console.log(`${unknown.length > 0 ? `no such row: ${unknown.join(', ')}; ` : ''}the rows are ${names.join(', ')}`);
  process.exit(unknown.length > 0 ? 1 : 0);
}

const runs = Number(values.runs ?? (values.quick ? 3 : 5));
if (!Number.isSafeInteger(runs) || runs < 1) throw new RangeError('--runs takes a whole number from 1');
const quietWaitSeconds = Number(values['quiet-wait']);
const scale = { ...(values.quick ? QUICK : FULL), data: values.data ?? null };

console.log(
  `Node ${process.version}, ${availableParallelism()} cores (${cpus()[0]?.model}), medians of ${runs} runs\n`,
);
const chosen = new Set(positionals.length === 0 ? names : positionals.flatMap(rowsOf));
const onSample = (text: string): void => console.log(text);
const results: BenchmarkResult[] = [];
if (values.beside === undefined) {
  for (const benchmark of BENCHMARKS.filter(({ name }) => chosen.has(name))) {
    results.push(await runBenchmark(benchmark, { runs, scale, quietWaitSeconds, onSample }));
  }
} else {
  const options = ['--quiet-wait', values['quiet-wait'], ...(values.quick ? ['--quick'] : [])];
  if (values.data !== undefined) options.push('--data', values.data);
  results.push(
    ...(await besideFormerVersion({ version: values.beside, benchmarks: [...chosen], runs, options, onSample })),
  );
}
console.log(`\n${renderTable(results)}`);
if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify({ runs, scale, results }, null, 2)}\n`);
// Clients of stores may keep sockets open for a while after their end.
process.exit(0);
