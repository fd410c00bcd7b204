/** Fields of a fact, and where their counts are in a byte: 2 bits for names and summaries, 4 for passages. */
export const FIELDS = { name: { shift: 0, max: 3 }, summary: { shift: 2, max: 3 }, passage: { shift: 4, max: 15 } };

/** Counts another occurrence of a term in a field. */
export function counted(counts: number, { shift, max }: (typeof FIELDS)['name']): number {
  return ((counts >> shift) & max) === max ? counts : counts + (1 << shift);
}

export const countInName = (counts: number): number => counts & 3;
export const countInSummary = (counts: number): number => (counts >> 2) & 3;
export const countInPassage = (counts: number): number => counts >> 4;
