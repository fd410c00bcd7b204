import { isObject, parsedJson } from '#libs/kernel/json.ts';
import { admitText } from '#libs/kernel/text.ts';

import type { Refusal } from './tool-server-error.ts';

const MAX_WORDS = 300;

/** The reason in a body that refuses a request: the message of a JSON-RPC error, or of other forms that servers use. */
export function refusalIn(status: number, contentType: string, body: string): Refusal {
  const json = parsedJson(body);
  // A page for people says nothing.
  if (!isObject(json)) return { status, code: null, words: contentType.startsWith('text/plain') ? body : null };
  const { error } = json;
  if (isObject(error)) {
    const code = typeof error.code === 'number' ? error.code : null;
    return { status, code, words: textOf(error.message) };
  }
  const said = [json.error_description, json.message, json.detail, error].map(textOf);
  return { status, code: null, words: said.find((one) => one !== null) ?? null };
}

/** `: “…”` behind a sentence; empty for no words. @param secret replaced where the server repeats it */
export function quoted(words: string | null, secret: string | null): string {
  const line = (secret === null ? (words ?? '') : (words ?? '').replaceAll(secret, '…'))
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .trim();
  if (line === '') return '';
  return `: “${line.length > MAX_WORDS ? `${admitText(line, MAX_WORDS)}…` : admitText(line)}”`;
}

/** The sentence for a status of HTTP. @param challenge the header `WWW-Authenticate` */
export function sentenceOf({ status, words }: Refusal, challenge: string | null, secret: string | null): string {
  const sentence = `the tool server answered with the status ${status}`;
  if (status !== 401 && status !== 403) return `${sentence}${quoted(words, secret)}`;
  const why = secret === null ? 'it was given no token' : 'it does not accept the token';
  const asked = quoted(challenge, secret);
  return `${sentence}${asked === '' ? '' : ` and asks for authorization${asked}`}; ${why}${quoted(words, secret)}`;
}

export function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
