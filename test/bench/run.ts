import type { Benchmark, Row, Sample, Scale } from './benchmark.ts';
import { isQuiet, waitForQuiet } from './quiet.ts';
import { median } from './statistics.ts';

export interface RowResult {
  readonly row: Row;
  readonly ours: number;
  readonly theirs: number;
  /** Median of the ratios of each run: both sides of a run met the same noise. */
  readonly ratio: number;
  readonly lowest: number;
  readonly highest: number;
  readonly met: boolean | null;
}

export interface BenchmarkResult {
  readonly name: string;
  readonly rows: readonly RowResult[];
  readonly remarks: readonly string[];
}

export interface RunOptions {
  readonly runs: number;
  readonly scale: Scale;
  /** How long to wait before each measurement until other processes leave the machine idle. */
  readonly quietWaitSeconds: number;
  readonly onSample: (text: string) => void;
}

const BUSY = 'other processes kept the machine busy';

/**
 * Runs all sides in turn, `runs` times; every other time in the opposite order, so that no side always follows the
 * same neighbour.
 */
export async function runBenchmark(
  benchmark: Benchmark,
  { runs, scale, quietWaitSeconds, onSample }: RunOptions,
): Promise<BenchmarkResult> {
  const { sides, cleanUp } = await benchmark.prepare(scale);
  try {
    const samples = new Map<string, Sample[]>(Object.keys(sides).map((name) => [name, []]));
    for (let run = 0; run < runs; run++) {
      const order = Object.entries(sides);
      for (const [name, side] of run % 2 === 0 ? order : order.toReversed()) {
        const busy = await waitForQuiet(quietWaitSeconds);
        const measured = await side(scale);
        const sample = isQuiet(busy) ? measured : { ...measured, remarks: [...(measured.remarks ?? []), BUSY] };
        samples.get(name)?.push(sample);
        onSample(`${benchmark.name} ${run + 1}/${runs} ${name}: ${describe(sample)}`);
      }
    }
    return {
      name: benchmark.name,
      rows: benchmark.rows.map((row) => resultOf(row, samples)),
      remarks: remarksOf(samples),
    };
  } finally {
    await cleanUp();
  }
}

function resultOf(row: Row, samples: ReadonlyMap<string, readonly Sample[]>): RowResult {
  const of = (side: string) => (samples.get(side) ?? []).map(({ figures }) => figures[row.figure] ?? Number.NaN);
  return compare(row, of(row.ours), of(row.theirs));
}

/** @param ours figures of one side in each run */
export function compare(row: Row, ours: readonly number[], theirs: readonly number[]): RowResult {
  const ratios = ours.map((value, run) => value / (theirs[run] ?? Number.NaN));
  const ratio = median(ratios);
  return {
    row,
    ours: median(ours),
    theirs: median(theirs),
    ratio,
    lowest: Math.min(...ratios),
    highest: Math.max(...ratios),
    met: meets(row.goal, ratio),
  };
}

function meets(goal: Row['goal'], ratio: number): boolean | null {
  if (goal === undefined || Number.isNaN(ratio)) return null;
  return 'atLeast' in goal ? ratio >= goal.atLeast : ratio <= goal.atMost;
}

/** Each remark once, with the count of samples that have it. */
function remarksOf(samples: ReadonlyMap<string, readonly Sample[]>): string[] {
  return [...samples].flatMap(([side, list]) => {
    const counts = new Map<string, number>();
    for (const text of list.flatMap(({ remarks }) => remarks ?? [])) counts.set(text, (counts.get(text) ?? 0) + 1);
    return [...counts].map(([text, count]) => `${side}: ${text} (${count} of ${list.length} runs)`);
  });
}

function describe({ figures, remarks = [] }: Sample): string {
  const numbers = Object.entries(figures).map(([name, value]) => `${name} ${value.toPrecision(4)}`);
  return [...numbers, ...remarks].join(', ');
}
