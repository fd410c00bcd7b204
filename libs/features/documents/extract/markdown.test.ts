import fc from 'fast-check';
import { expect, it } from 'vitest';

import { type Block, BODY_REGION, joinBlocks } from './blocks.ts';
import { asText, codeOf, headingOf, markdownBlocks, plainText, tableOf } from './markdown.ts';

/** Words, and signs that mean something at the start of a line. Within lines, Markdown of the source stays Markdown. */
const part = fc.constantFrom(
  ...'a C# # ## ### - -- --- + * = === > | || -|- :- :-: |-|-| 1. 2) 12 ` ``` ~~~ : Key: ** [x](y) é 日本'.split(' '),
);
const line = fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => parts.join(' '));
const shown = fc
  .oneof(
    line,
    line.map((text) => text.replaceAll(' ', '')),
  )
  .filter((text) => plainText(text) !== '');
const lines = fc.array(shown, { minLength: 1, maxLength: 3 });
const row = fc.array(fc.oneof(fc.constant(''), shown), { minLength: 2, maxLength: 2 });

/** What is written, and what is to be read of it. */
type Written = readonly [kind: Block['kind'], text: string, read: readonly (readonly unknown[])[]];
const written: fc.Arbitrary<Written> = fc.oneof(
  fc.tuple(fc.integer({ min: 1, max: 6 }), shown).map(([level, title]): Written => {
    return ['heading', headingOf(level, title), [['heading', level, plainText(title)]]];
  }),
  lines.map((texts): Written => {
    return ['paragraph', asText(texts.join('\n')), [['paragraph', ...texts.map((text) => plainText(text))]]];
  }),
  shown.map((text): Written => ['item', `- ${asText(text)}`, [['item', plainText(text)]]]),
  lines.map((texts): Written => ['code', codeOf(texts.join('\n')), []]),
  fc.tuple(row, fc.array(row, { minLength: 1, maxLength: 3 })).map(([header, rows]): Written => {
    return ['table', tableOf(header, rows), [['table', ...[header, ...rows].flat().map((cell) => plainText(cell))]]];
  }),
);

function readBack(text: string): unknown[] {
  return markdownBlocks(text, false).flatMap((block): unknown[] => {
    switch (block.kind) {
      case 'heading':
        return [[block.kind, block.level, block.title]];
      case 'paragraph':
        return [[block.kind, ...block.lines.map((read) => plainText(read.text))]];
      case 'list':
        return block.items.map((item) => ['item', plainText(item.text)]);
      case 'table':
        return [[block.kind, ...block.header, ...block.rows.flatMap(({ cells }) => cells)]];
    }
  });
}

it('reads the blocks that it has written', () => {
  fc.assert(
    fc.property(fc.array(written, { maxLength: 6 }), (blocks) => {
      const text = joinBlocks(
        blocks.map(([kind, markdown]) => ({
          kind,
          level: 0,
          text: markdown,
          plain: '',
          linked: 0,
          region: BODY_REGION,
        })),
      );
      expect(readBack(text)).toEqual(blocks.flatMap(([, , read]) => read));
    }),
    { numRuns: 3_000 },
  );
});
