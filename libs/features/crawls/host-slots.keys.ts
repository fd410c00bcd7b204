/** Keys of a site, in one slot. They are not part of the read models: they expire. */
export function hostSlotKeys(digest: string): { readonly next: string; readonly open: string } {
  const prefix = `parley:site:{${digest}}:`;
  return { next: `${prefix}next`, open: `${prefix}open` };
}
