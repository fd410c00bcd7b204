/*
 * What reads have to know of an interaction, taken out of its bytes: parsing all of them would cost more than
 * the rest of the read.
 *
 * It is looked for from the end. Whatever stands behind these members has names of ours, and inside a text a
 * quotation mark has a backslash before it: so what is found there is never what somebody has written.
 */
const COMPLETE = '"complete":';
const SPAN_ID = '"span_id":';
const PARENT = ',"parent_span_id":';
const LETTER_T = 0x74;
const CREATED_AT = '"created_at":"';
const TIMESTAMP_LENGTH = '2026-01-31T12:00:00.000Z'.length;

/** @param document as it is stored, or with what was added to it */
export function isComplete(document: Buffer): boolean {
  return document[placeBehind(document, COMPLETE)] === LETTER_T;
}

/** @param document as it is stored, or with what was added to it */
export function spanIdOf(document: Buffer): string {
  const start = placeBehind(document, SPAN_ID);
  return String(JSON.parse(document.toString('utf8', start, document.indexOf(PARENT, start))));
}

/** Unix milliseconds. Only the id comes before `created_at`, so the first one found is the interaction's own. */
export function createdMsOf(document: Buffer): number {
  const start = document.indexOf(CREATED_AT) + CREATED_AT.length;
  return Date.parse(document.toString('latin1', start, start + TIMESTAMP_LENGTH));
}

function placeBehind(document: Buffer, name: string): number {
  const at = document.lastIndexOf(name);
  if (at < 0) throw new TypeError(`a stored interaction has no ${name}`);
  return at + name.length;
}
