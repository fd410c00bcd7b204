// Fails on errors and warnings of the public parser about a document, and if it finds none in a damaged one.
import { readFile } from 'node:fs/promises';

import { Parser } from '@asyncapi/parser';

async function faultsOf(text) {
  const { diagnostics } = await new Parser().parse(text);
  return diagnostics
    .filter(({ severity }) => severity <= 1)
    .map(({ severity, path, message }) => `${severity} ${path.join('.')}: ${message}`);
}

const text = await readFile(process.argv[2], 'utf8');
const faults = await faultsOf(text);
if (faults.length > 0) throw new Error(faults.join('\n'));
const dangling = text.replaceAll('#/components/schemas/HelloFrame', '#/components/schemas/nowhere');
if ((await faultsOf(dangling)).length === 0) throw new Error('the parser finds no reference without a target');
