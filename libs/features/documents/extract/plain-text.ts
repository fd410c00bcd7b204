/** The start of a line that Markdown would read as a block, or as what makes the line above a heading or a table. */
const STARTS_BLOCK = /^(?:#{1,6}(?=\s|$)|[-*+](?=\s)|>|`{3}|~{3}|\||\d{1,9}[.)](?=\s)|:?-{2,}|:-|=+\s*$)/gm;
/** Soft hyphens, and what joins or separates letters without a sign. Joiners that change letters stay. */
const INVISIBLE = /[\u00AD\u200B\u2060\uFEFF]/g;

/** Markdown that shows the lines as they are. @param lines `hasItems`: numbered lines are items of a list */
export function asText(lines: string, { hasItems = false } = {}): string {
  return lines.replace(STARTS_BLOCK, (start) => {
    if (!/^\d/.test(start)) return `\\${start}`;
    return hasItems ? start : `${start.slice(0, -1)}\\${start.at(-1)}`;
  });
}

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
