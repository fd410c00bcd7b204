import { isUtf8 } from 'node:buffer';
import { createRequire } from 'node:module';

import sniffEncoding from 'html-encoding-sniffer';
import type * as Jschardet from 'jschardet';

const require = createRequire(import.meta.url);

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
 * UTF-8. Servers and pages often name an encoding that they do not use, or none, so one that does not fit the bytes is
 * replaced by UTF-8 or, where that does not fit either, by the encoding that the bytes look like.
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
  const isEscaped = declared === 'UTF-8' && first?.text.includes('\x1B') && ESCAPED_JAPANESE.test(first.text);
  if (first !== null && !isEscaped && !isGarbled(first.text)) return first;
  const ownDeclaration = sniffEncoding(bytes, { defaultEncoding: 'windows-1252' });
  const stated = ownDeclaration === 'windows-1252' ? null : ownDeclaration;
  for (const charsetOf of [() => 'UTF-8', () => stated, () => guessedCharset(bytes), () => 'windows-1252']) {
    const charset = charsetOf();
    const other = charset === null || charset === declared ? null : decodeAs(bytes, charset);
    if (other !== null && !isGarbled(other.text)) return other;
  }
  return first ?? { text: new TextDecoder().decode(bytes), charset: 'UTF-8' };
}

/** ISO-2022-JP is ASCII with these escape sequences, and so it is UTF-8 as well. */
// oxlint-disable-next-line no-control-regex -- the escape character is what tells it
const ESCAPED_JAPANESE = /\x1B(?:\$[@B]|\([JI])/;
/** Bytes by which an encoding is recognised. */
const MAX_SAMPLE = 64 * 1024;
/** Under less, the library names rare encodings for short texts. */
const MIN_CONFIDENCE = 0.1;
/** Encodings that differ so much from windows-1252 that they are recognised, by their labels in the Encoding Standard. */
const RECOGNISED: Readonly<Record<string, string>> = {
  big5: 'big5',
  'big5-hkscs': 'big5',
  cp932: 'shift_jis',
  cp949: 'euc-kr',
  'euc-jp': 'euc-jp',
  'euc-kr': 'euc-kr',
  gb18030: 'gb18030',
  gb2312: 'gb18030',
  'iso-2022-jp': 'iso-2022-jp',
  'koi8-r': 'koi8-r',
  'koi8-u': 'koi8-u',
  shift_jis: 'shift_jis',
  'windows-1251': 'windows-1251',
  'windows-1253': 'windows-1253',
};

/** The encoding that the bytes of a text without a declared encoding look like. */
function guessedCharset(bytes: Uint8Array): string {
  // Loaded with the first such text: its model takes a tenth of a second and some memory.
  const { detect } = require('jschardet') as typeof Jschardet;
  const { encoding, confidence } = detect(Buffer.from(bytes.subarray(0, MAX_SAMPLE)));
  return (confidence >= MIN_CONFIDENCE && RECOGNISED[encoding?.toLowerCase() ?? '']) || 'windows-1252';
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
