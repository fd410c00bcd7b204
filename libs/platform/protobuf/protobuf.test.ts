import { describe, expect, it } from 'vitest';

import {
  bytes,
  encode,
  type Field,
  Fields,
  mapEntry,
  mapEntryIn,
  maxInt64,
  message,
  number,
  text,
  textIn,
  UnexpectedForm,
} from './index.ts';

/** Each field with its number and its value as it is read. */
function read(encoded: Buffer, readers: Record<number, (fields: Fields) => unknown>): unknown[] {
  const fields = new Fields(encoded);
  const found: unknown[] = [];
  while (fields.next()) {
    const reader = readers[fields.field];
    if (reader === undefined) fields.skip();
    else found.push([fields.field, reader(fields)]);
  }
  return found;
}

const varint = (fields: Fields) => fields.varint();

describe('a message', () => {
  it('is read as it was written', () => {
    const written: Field[] = [
      number(1, 0),
      number(2, 300),
      number(3, Number.MAX_SAFE_INTEGER),
      maxInt64(4),
      text(5, 'Zoë 🙂'),
      bytes(6, Buffer.from([0, 255])),
      message(7, [text(1, 'inner')]),
      mapEntry(15, 'name', 'value'),
    ];
    const found = read(encode(written), {
      1: varint,
      2: varint,
      3: varint,
      4: varint,
      5: (fields) => fields.text(),
      6: (fields) => [...fields.bytes()],
      7: (fields) => textIn(fields.message(), 1),
      15: (fields) => mapEntryIn(fields.message()),
    });
    expect(found).toEqual([
      [1, 0],
      [2, 300],
      // More than 42 bits: such integers are read as `bigint`.
      [3, BigInt(Number.MAX_SAFE_INTEGER)],
      [4, 2n ** 63n - 1n],
      [5, 'Zoë 🙂'],
      [6, [0, 255]],
      [7, 'inner'],
      [15, { key: 'name', value: 'value' }],
    ]);
  });

  it('may have fields that its reader does not know, of every type and number', () => {
    const unknown = '0801 11 0102030405060708 1d 01020304 2203616263 f8ffffff0f 05';
    const encoded = Buffer.concat([Buffer.from(unknown.replaceAll(' ', ''), 'hex'), encode([text(6, 'known')])]);
    expect(read(encoded, { 6: (fields) => fields.text() })).toEqual([[6, 'known']]);
  });

  it.each([
    ['a length past its end', '0a05 6162'],
    ['a varint past its end', '08 80'],
    ['a varint of more than ten bytes', '08 ffffffffffffffffffffff'],
    ['a fixed number past its end', '0d 0102'],
    ['the field 0', '02 01 61'],
    ['the number of a field in more than 29 bits', '808080808001 01'],
    ['a group', '0b 0c'],
  ])('with %s is refused', (_what, hex) => {
    expect(() => read(Buffer.from(hex.replaceAll(' ', ''), 'hex'), {})).toThrow(UnexpectedForm);
  });

  it('is refused by a reader that expects another type', () => {
    expect(() => read(encode([text(1, 'a')]), { 1: varint })).toThrow(UnexpectedForm);
    expect(() => read(encode([number(1, 1)]), { 1: (fields) => fields.text() })).toThrow(UnexpectedForm);
  });
});
