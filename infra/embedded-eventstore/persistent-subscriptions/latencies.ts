// How long a consumer takes to answer, over its last answers.
const SAMPLES = 1000;

const PERCENTILES: readonly (readonly [string, number])[] = [
  ['Quintile 1', 20],
  ['Quintile 2', 40],
  ['Quintile 3', 60],
  ['Quintile 4', 80],
  ['Quintile 5', 100],
  ['90%', 90],
  ['95%', 95],
  ['99%', 99],
  ['99.5%', 99.5],
  ['99.9%', 99.9],
];

export class Latencies {
  #samples: number[] = [];
  #next = 0;

  add(milliseconds: number): void {
    this.#samples[this.#next] = milliseconds;
    this.#next = (this.#next + 1) % SAMPLES;
  }

  /** Names as the protocol has them, values in whole milliseconds; all 0 before the first answer. */
  measurements(): { key: string; value: number }[] {
    const sorted = this.#samples.toSorted((a, b) => a - b);
    const at = (percent: number) =>
      Math.round(sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? 0);
    const mean = sorted.length === 0 ? 0 : sorted.reduce((sum, one) => sum + one, 0) / sorted.length;
    return [
      { key: 'Mean', value: Math.round(mean) },
      { key: 'Median', value: at(50) },
      { key: 'Fastest', value: at(0) },
      ...PERCENTILES.map(([key, percent]) => ({ key, value: at(percent) })),
      { key: 'Highest', value: at(100) },
    ];
  }
}
