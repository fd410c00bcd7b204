import { admitText } from '#libs/kernel/text.ts';

/** Data of others for a model, between marks that the data themselves cannot end. Instructions say what the marks mean. */
export function untrusted(data: Readonly<Record<string, unknown>>): string {
  return `<untrusted_data>\n${asText(JSON.stringify(data).replaceAll('</', '<\\/'))}\n</untrusted_data>`;
}

/**
 * A text of others, such as a name, within a sentence of a prompt: in one line, and without the marks of untrusted data.
 * Text within a prompt that may have lines of its own is `asText`.
 */
export function inOneLine(text: string, maxLength = Infinity): string {
  const line = text.replaceAll(/[\p{White_Space}\p{Cc}]+/gu, ' ').trim();
  return asText(admitText(line, maxLength));
}

/** A text of others within a prompt. It cannot begin or end what is marked as untrusted data. */
export function asText(text: string): string {
  return admitText(text).replaceAll(/<(?=\s*\/?\s*untrusted_data)/gi, '‹');
}
