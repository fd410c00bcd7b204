/** The rows of this version beside those of another one, measured in turn. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import { checkoutOf, environmentOfCheckout, forgetCheckouts } from '#test/support/former-checkout.ts';

import type { Row } from './benchmark.ts';
import { type BenchmarkResult, compare } from './run.ts';

const CURRENT = resolve(import.meta.dirname, '../..');

interface Comparison {
  /** A commit, or the folder of a checkout. */
  readonly version: string;
  readonly benchmarks: readonly string[];
  readonly runs: number;
  /** Options of the bench for each run. */
  readonly options: readonly string[];
  readonly onSample: (text: string) => void;
}

/**
 * Both versions measure a benchmark with their own code, each run in processes of its own; every other time in the opposite
 * order.
 *
 * @returns rows whose `theirs` is what the other version's own side reached. Rows that it lacks are remarks.
 */
export async function besideFormerVersion({ version, ...comparison }: Comparison): Promise<BenchmarkResult[]> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-bench-'));
  try {
    const former = checkoutOf(version, folder);
    const results: BenchmarkResult[] = [];
    for (const name of comparison.benchmarks) results.push(await compareBenchmark(name, former, comparison));
    return results;
  } finally {
    await rm(folder, { recursive: true, force: true });
    forgetCheckouts();
  }
}

async function compareBenchmark(
  name: string,
  former: string,
  { runs, options, onSample }: Omit<Comparison, 'version' | 'benchmarks'>,
): Promise<BenchmarkResult> {
  const measured = new Map<string, BenchmarkResult[]>([
    [CURRENT, []],
    [former, []],
  ]);
  for (let run = 0; run < runs; run++) {
    for (const checkout of run % 2 === 0 ? [CURRENT, former] : [former, CURRENT]) {
      const result = await measure(name, checkout, options);
      const side = checkout === CURRENT ? 'this version' : 'the former one';
      if (result === null) return { name, rows: [], remarks: [`${side} cannot measure it`] };
      measured.get(checkout)?.push(result);
      const reached = new Set(result.rows.map(({ row, ours }) => `${row.title} ${ours.toPrecision(4)} ${row.unit}`));
      onSample(`${name} ${run + 1}/${runs} ${side}: ${[...reached].join(', ')}`);
    }
  }
  const [ours = [], theirs = []] = measured.values();
  const figures = (results: readonly BenchmarkResult[], key: string): number[] =>
    results.map(({ rows }) => rows.find(({ row }) => keyOf(row) === key)?.ours ?? Number.NaN);
  // Rows against several baselines have the same figure of Parley.
  const distinct = new Map((ours[0]?.rows ?? []).map(({ row }) => [keyOf(row), row]));
  const rows = [...distinct].map(([key, { title, ours: side, figure, unit }]) =>
    compare(
      { title, ours: side, theirs: 'the former version', figure, unit },
      figures(ours, key),
      figures(theirs, key),
    ),
  );
  return { name, rows, remarks: [...new Set(ours.concat(theirs).flatMap(({ remarks }) => remarks))] };
}

const keyOf = ({ title, ours, figure }: Row): string => JSON.stringify([title, ours, figure]);

/** One run in a process of the checkout. @returns null if it fails, as where the version has no such row */
async function measure(name: string, checkout: string, options: readonly string[]): Promise<BenchmarkResult | null> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-bench-run-'));
  const file = join(folder, 'results.json');
  try {
    const bench = ['run', '--silent', 'bench', '--', name, '--runs', '1', '--json', file, ...options];
    const program = spawn('npm', bench, {
      cwd: checkout,
      env: environmentOfCheckout(),
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const [status] = (await once(program, 'close')) as [number | null];
    if (status !== 0) return null;
    const { results } = JSON.parse(await readFile(file, 'utf8')) as { readonly results: readonly BenchmarkResult[] };
    return results.find((result) => result.name === name) ?? null;
  } finally {
    await rm(folder, { recursive: true });
  }
}
