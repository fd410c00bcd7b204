import { expect, it } from 'vitest';

import { decodeText } from './charset.ts';

/** Short texts, in bytes of encodings that the runtime decodes and does not encode. */
const TEXTS = [
  ['GBK', '你好，世界。', 'c4e3bac3a3accac0bde7a1a3'],
  ['Shift_JIS', 'こんにちは世界。', '82b182f182c982bf82cd90a28a458142'],
  ['EUC-JP', 'こんにちは世界。', 'a4b3a4f3a4cba4c1a4cfc0a4b3a6a1a3'],
  ['Big5', '你好，世界。', 'a741a66ea141a540acc9a143'],
  ['EUC-KR', '안녕하세요 세계', 'bec8b3e7c7cfbcbcbfe420bcbcb0e8'],
  ['windows-1251', 'Привет, мир!', 'cff0e8e2e5f22c20ece8f021'],
  ['KOI8-R', 'Привет, мир!', 'f0d2c9d7c5d42c20cdc9d221'],
  ['ISO-2022-JP', 'こんにちは世界。', '1b24422433247324 4b2441244f40243326 21231b2842'.replaceAll(' ', '')],
  ['windows-1252', 'Grüße aus Köln – schön', '4772fcdf6520617573204bf66c6e2096207363 68f66e'.replaceAll(' ', '')],
] as const;

it.each(TEXTS)('reads %s that is not declared, or declared as UTF-8', (_, text, hex) => {
  const bytes = Buffer.from(hex, 'hex');
  for (const type of ['text/plain', 'text/plain; charset=utf-8', null]) expect(decodeText(bytes, type).text).toBe(text);
});

it.each(TEXTS)('reads %s that is declared', (charset, text, hex) => {
  expect(decodeText(Buffer.from(hex, 'hex'), `text/plain; charset=${charset}`).text).toBe(text);
});

it('reads what it has decoded as it is', () => {
  for (const [, text] of TEXTS) expect(decodeText(Buffer.from(text), 'text/plain')).toEqual({ text, charset: 'UTF-8' });
});
