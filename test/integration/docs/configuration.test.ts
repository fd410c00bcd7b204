import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';

import { describeConfig } from '#libs/platform/config/index.ts';

const page = join(import.meta.dirname, '../../../docs/configuration.md');
const BEGIN = '<!-- configuration: made from libs/platform/config; a test compares -->';
const END = '<!-- /configuration -->';

/** The table of variables, with cells as prettier formats them. */
function configurationRows(): string[][] {
  return describeConfig({}).map(({ name, canBeInFile, default: fallback, description }) => [
    canBeInFile ? `\`${name}\`, \`…_FILE\`` : `\`${name}\``,
    fallback === null || fallback === '' ? '' : `\`${fallback}\``,
    description,
  ]);
}

it('docs/configuration.md describes every variable as the configuration does', async () => {
  const text = await readFile(page, 'utf8');
  const section = text.slice(text.indexOf(BEGIN) + BEGIN.length, text.indexOf(END));
  const rows = section
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .slice(2)
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    );
  expect(rows).toEqual(configurationRows());
});
