import { isUtf8 } from 'node:buffer';

import sniffEncoding from 'html-encoding-sniffer';

export interface DecodedText {
  readonly text: string;
  /** As in the Encoding Standard. */
  readonly charset: string;
}

/** Undecodable characters for each readable one outside of ASCII, from which on another encoding is tried. */
const MAX_REPLACED = 0.1;
const REPLACEMENT = '\uFFFD';
/** In encodings of one byte for each character, all bytes are text, which says nothing: UTF-8 is tried first. */
const MULTI_BYTE = /^(?:utf|shift|euc|gb|big5|iso-2022)/i;

/**
 * Decodes HTML or text as browsers do: byte order mark, then `Content-Type`, then the page's own declaration, else
 * UTF-8. Servers and pages often name an encoding that they do not use, so one that does not fit the bytes is replaced
 * by UTF-8 or, where that does not fit either, by windows-1252.
 */
export function decodeText(bytes: Uint8Array, contentType: string | null): DecodedText {
  const label = /charset\s*=\s*["']?([^\s"';,]+)/i.exec(contentType ?? '')?.[1];
  const declared = sniffEncoding(bytes, {
    ...(label === undefined ? {} : { transportLayerEncodingLabel: label }),
    defaultEncoding: 'UTF-8',
  });
  const first = decodeAs(bytes, declared);
  const isDoubtful = first === null || !MULTI_BYTE.test(declared) || first.text.includes(REPLACEMENT);
  if (isDoubtful && isUtf8(bytes)) return { text: new TextDecoder().decode(bytes), charset: 'UTF-8' };
  if (first !== null && !isGarbled(first.text)) return first;
  const ownDeclaration = sniffEncoding(bytes, { defaultEncoding: 'windows-1252' });
  for (const charset of ['UTF-8', ownDeclaration, 'windows-1252']) {
    const other = charset === declared ? null : decodeAs(bytes, charset);
    if (other !== null && !isGarbled(other.text)) return other;
  }
  return first ?? { text: new TextDecoder().decode(bytes), charset: 'UTF-8' };
}

function decodeAs(bytes: Uint8Array, charset: string): DecodedText | null {
  try {
    return { text: new TextDecoder(charset).decode(bytes), charset };
  } catch {
    // The sniffer knows encodings that the runtime may lack.
    return null;
  }
}

function isGarbled(text: string): boolean {
  if (!text.includes(REPLACEMENT)) return false;
  let [replaced, readable] = [0, 0];
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0xfffd) replaced += 1;
    else if (code > 0x7f) readable += 1;
  }
  return replaced > readable * MAX_REPLACED;
}
