/** The middle value; the mean of the two middle ones of an even number. `NaN` for none. */
export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

/** The value below which `fraction` (0 to 1) of the values lie, between neighbours linearly. `NaN` for none. */
export function percentile(values: readonly number[] | Float64Array, fraction: number): number {
  const sorted = Float64Array.from(values).sort();
  const at = (sorted.length - 1) * fraction;
  const below = sorted[Math.floor(at)] ?? Number.NaN;
  const above = sorted[Math.ceil(at)] ?? Number.NaN;
  return below + (above - below) * (at - Math.floor(at));
}
