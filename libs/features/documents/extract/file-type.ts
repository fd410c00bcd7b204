/** Readers of PDF look for its signature in as many bytes. */
const PDF_START = 1_024;
const MAX_START = 4_096;
/** Declared types that say nothing about the content. */
const GENERIC = /^(?:application|binary)\/(?:x-)?(?:octet-stream|download|force-download|unknown)$/;

/**
 * Whether a file is a PDF, although servers and mail put other bytes before it.
 *
 * @param bytes at least the first 4 KiB of the file
 */
export function isPdf(bytes: Uint8Array): boolean {
  const start = startOf(bytes);
  const at = start.slice(0, PDF_START).indexOf('%PDF-');
  if (at < 0) return false;
  // A text may mention the signature; in a PDF, the first object follows it.
  return /^\W*$/.test(start.slice(0, at)) || /\s\d+ \d+ obj\b/.test(start.slice(at));
}

/** Whether a declared type leaves it to the content what a file is. @param declared `type/subtype`, in lower case */
export function isGeneric(declared: string): boolean {
  return declared === '' || GENERIC.test(declared);
}

/** The type that the beginning of a file shows; null for a file that is neither a PDF, nor HTML, nor text. */
export function shownType(bytes: Uint8Array): 'application/pdf' | 'text/html' | 'text/plain' | null {
  if (isPdf(bytes)) return 'application/pdf';
  const start = startOf(bytes);
  if (/^(?:ï»¿)?\s*<(?:!doctype html|html)/i.test(start)) return 'text/html';
  const isUtf16 = /^(?:ÿþ|þÿ)/.test(start);
  return start.includes('\0') && !isUtf16 ? null : 'text/plain';
}

/** Each byte as the character of its number. */
function startOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, MAX_START)).toString('latin1');
}
