/** Soft hyphens, and what joins or separates letters without a sign. Joiners that change letters stay. */
const INVISIBLE = /[\u00AD\u200B\u2060\uFEFF]/g;

/** Without characters that readers do not see, and that would hide words from a search. */
export function withoutInvisible(text: string): string {
  return text.replace(INVISIBLE, '');
}

const RAISED = new Map([...'0123456789+-−()n'].map((sign, at) => [sign, '⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁽⁾ⁿ'[at]!]));
const ORDINAL = /^(?:st|nd|rd|th|e|er|re|ère|ème|o|a|º|ª|®|™|©|℠|\s*)$/i;

/** A superscript that does not fuse with the number before it. @param before the character before it */
export function raised(text: string, before: string): string {
  const signs = [...text.trim()];
  if (signs.length > 0 && signs.every((sign) => RAISED.has(sign)))
    return signs.map((sign) => RAISED.get(sign)).join('');
  const isApart = ORDINAL.test(text) || !/[\p{L}\p{N})\]]/u.test(before) || !/^[\p{L}\p{N}]/u.test(text);
  return isApart ? text : `^${text}`;
}
