import { describe, expect, it } from 'vitest';

import { readValues } from './source-values.ts';

describe('files of values', () => {
  const read = async (text: string, size = 7) => {
    const bytes = Buffer.from(text);
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) =>
      bytes.subarray(n * size, (n + 1) * size),
    );
    const values = await Array.fromAsync(
      readValues(
        (async function* () {
          yield* chunks;
        })(),
      ),
    );
    return values.map(({ line, item, text: value, problem }) => [line, item, value ?? problem]);
  };
  const values = [{ a: '],[{é"\\' }, { b: [1, { c: [] }] }];
  const compact = values.map((value) => JSON.stringify(value));

  it.each([1, 3, 1_000])('are lines, arrays or pretty-printed values, in chunks of %i bytes', async (size) => {
    expect(await read(`\uFEFF${compact.join('\n')}`, size)).toEqual([
      [1, undefined, compact[0]],
      [2, undefined, compact[1]],
    ]);
    expect(await read(` [${compact.join(',')} ]\n`, size)).toEqual([
      [1, 1, compact[0]],
      [1, 2, compact[1]],
    ]);
    const array = await read(JSON.stringify(values, null, 2), size);
    expect(array.map(([line, item, text]) => [line, item, JSON.parse(String(text))])).toEqual([
      [2, 1, values[0]],
      [5, 2, values[1]],
    ]);
    const pretty = await read(values.map((value) => JSON.stringify(value, null, 2)).join('\n'), size);
    expect(pretty.map(([line, item, text]) => [line, item, JSON.parse(String(text))])).toEqual([
      [1, undefined, values[0]],
      [4, undefined, values[1]],
    ]);
  });

  it('are named where they are damaged', async () => {
    expect(await read('[{"a":1},{"b"')).toEqual([
      [1, 1, '{"a":1}'],
      [1, 2, 'the file ends inside of this element'],
    ]);
    expect(await read('[{"a":1},')).toEqual([
      [1, 1, '{"a":1}'],
      [1, undefined, 'the file ends before its list'],
    ]);
    expect(await read('[{"a":1}]\n[2]')).toEqual([
      [1, 1, '{"a":1}'],
      [2, 2, 'text after the end of the list'],
    ]);
    expect(await read(`["${'x'.repeat(17_000_000)}",2]`, 1_000_000)).toEqual([
      [1, 1, 'longer than 16 MiB'],
      [1, 2, '2'],
    ]);
    expect(await read('[]')).toEqual([]);
    expect(await read('')).toEqual([]);
  });
});
