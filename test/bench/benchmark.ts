/**
 * A benchmark has sides that do the same work, each measured in processes of its own that are started anew for every
 * run, and rows that compare two sides.
 */

/** Results of one run of one side; figures by name (`rate`, `p99`), in the units that the rows name. */
export interface Sample {
  readonly figures: Readonly<Record<string, number>>;
  /** Caveats for the reader of the figures, such as that the load generator was the limit. */
  readonly remarks?: readonly string[];
}

/** Starts its processes, warms up, measures, ends them. */
export type Side = (scale: Scale) => Promise<Sample>;

/** Size of the measurement: a full run, or a quick look. */
export interface Scale {
  /** Seconds of each measurement that is limited by time. */
  readonly seconds: number;
  /** Seconds before it that do not count. */
  readonly warmUpSeconds: number;
  /** Factor on amounts of data, 1 or less. */
  readonly amount: number;
  /** Folder of a public collection that is not part of the project; null without one. */
  readonly data: string | null;
}

export interface Row {
  readonly title: string;
  readonly ours: string;
  readonly theirs: string;
  readonly figure: string;
  readonly unit: string;
  /** Target for ours / theirs. Absent where there is none: the row is informative. */
  readonly goal?: { readonly atLeast: number } | { readonly atMost: number };
}

export interface Benchmark {
  readonly name: string;
  readonly rows: readonly Row[];
  /** Starts what the runs share (stores, data), and returns how to measure. */
  prepare(scale: Scale): Promise<Prepared>;
}

export interface Prepared {
  readonly sides: Readonly<Record<string, Side>>;
  cleanUp(): Promise<void>;
}

/**
 * Sides that one process measures in turn, so that they meet the same noise: once in each run, at the first of its sides.
 *
 * @param measure figures of each side, by its name
 */
export function measuredTogether<Name extends string>(
  measure: (scale: Scale) => Promise<Readonly<Record<Name, Sample['figures']>>>,
): (name: Name) => Side {
  let answer: Readonly<Record<Name, Sample['figures']>> | null = null;
  const given = new Set<Name>();
  return (name) => async (scale) => {
    if (answer === null || given.has(name)) {
      given.clear();
      answer = await measure(scale);
    }
    given.add(name);
    return { figures: answer[name] };
  };
}
