/**
 * The secrets of this process, and the one function that takes them out of text. Others echo them: a model endpoint that
 * refuses a key names it, a store's client quotes its address. The configuration makes its secrets known, as do the stores
 * that choose their own; logs, errors, events, traces and the shown configuration pass through here.
 */

const REDACTED = '[redacted]';
/** A shorter secret, a plain word or a number would be found in places that it has nothing to do with. */
const MIN_LENGTH = 8;
const PLAIN = /^(?:[a-z]{1,15}|[\d.]+)$/i;
/** A row of equal characters is a placeholder, and texts of users have such rows. */
const MIN_DISTINCT = 5;
/** In events, texts of users stand beside texts of others: only what cannot be a word is taken out of them. */
const MIN_IN_CONTENT = 16;

const known = new Set<string>();
let longestFirst: readonly string[] = [];

/** Makes secrets known for as long as the process runs. */
export function conceal(secrets: Iterable<string>): void {
  for (const secret of secrets) {
    for (const form of formsOf(secret)) {
      if (form.length >= MIN_LENGTH && new Set(form).size >= MIN_DISTINCT && !PLAIN.test(form)) known.add(form);
    }
  }
  // A secret may be part of another one.
  longestFirst = [...known].toSorted((a, b) => b.length - a.length);
}

/** As they are, and as JSON, addresses and headers write them. */
function formsOf(secret: string): string[] {
  const basic = Buffer.from(secret).toString('base64').replace(/=+$/, '');
  const forms = [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret), encodeURI(secret), basic];
  return forms.filter((form) => form !== '');
}

/** The text without the known secrets. JSON stays JSON. */
export function redacted(text: string): string {
  return without(text, 0);
}

/** Redacts content, which others want back unchanged: only the known secrets that no text has by chance. */
export function redactedContent(text: string): string {
  return without(text, MIN_IN_CONTENT);
}

function without(text: string, minLength: number): string {
  if (text.length < Math.max(minLength, longestFirst.at(-1)?.length ?? Infinity)) return text;
  let result = text;
  for (const secret of longestFirst) {
    if (secret.length >= minLength && result.includes(secret)) result = result.replaceAll(secret, REDACTED);
  }
  return result;
}
