import { open, writeFile } from 'node:fs/promises';

import { decodeText } from '#libs/features/documents/extract/index.ts';

import type { InspectedPreview, InspectedText } from './file-inspection.ts';

/** The limit of documents, see `MAX_DOCUMENT_BYTES`. */
const MAX_TEXT_BYTES = 5 * 1024 * 1024;
const MAX_PREVIEW_BYTES = 16 * 1024;

/** The start of a plain text, in UTF-8. */
export async function writeTextPreview(path: string, previewPath: string): Promise<InspectedPreview> {
  await writeStart(path, previewPath, MAX_PREVIEW_BYTES);
  return { mimeType: 'text/plain', width: 0, height: 0 };
}

export async function writeText(path: string, textPath: string, isHtml: boolean): Promise<InspectedText> {
  const truncated = await writeStart(path, textPath, MAX_TEXT_BYTES);
  return { contentType: isHtml ? 'text/html' : 'text/plain', title: null, truncated };
}

/** @returns whether the file has more */
async function writeStart(path: string, to: string, maxBytes: number): Promise<boolean> {
  const bytes = await startOf(path, maxBytes + 1);
  const isLonger = bytes.length > maxBytes;
  const { text } = decodeText(isLonger ? wholeLines(bytes.subarray(0, maxBytes)) : bytes, null);
  const utf8 = Buffer.from(text);
  // Other charsets may have fewer bytes for the same text.
  const isTooLong = utf8.length > maxBytes;
  await writeFile(to, isTooLong ? wholeCharacters(utf8.subarray(0, maxBytes)) : utf8);
  return isLonger || isTooLong;
}

/** A character that is cut in two would make the text look like one in another charset. */
function wholeLines(bytes: Buffer): Buffer {
  const isUtf16 = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
  if (isUtf16) return bytes.subarray(0, bytes.length & ~1);
  const end = bytes.lastIndexOf('\n');
  return end === -1 ? wholeCharacters(bytes) : bytes.subarray(0, end + 1);
}

/** Without the bytes of a character in UTF-8 that may be cut. */
function wholeCharacters(bytes: Buffer): Buffer {
  let end = bytes.length;
  while (end > bytes.length - 4 && ((bytes[end - 1] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.subarray(0, ((bytes[end - 1] ?? 0) & 0xc0) === 0xc0 ? end - 1 : bytes.length);
}

/** The first bytes of a file. */
export async function startOf(path: string, maxBytes: number): Promise<Buffer> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const length = Math.min(size, maxBytes);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
