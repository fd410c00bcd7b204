/** The blocks of shell commands in the documents, and which of them no test runs: the table of docs/contributing.md. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');

export interface CommandBlock {
  /** Path from the root, `docs/media.md`. */
  readonly document: string;
  readonly commands: string;
  /** Its first line that is no comment. */
  readonly first: string;
}

const SHELL_BLOCK = /^( *)```(?:sh|bash|shell|console)\n([^]*?)^ *```$/gm;

export async function commandBlocks(): Promise<readonly CommandBlock[]> {
  const pages = (await readdir(join(root, 'docs')))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`);
  const documents = ['README.md', 'libs/client/README.md', 'test/images/README.md', ...pages.toSorted()];
  const blocks = await Promise.all(
    documents.map(async (document) => {
      const text = await readFile(join(root, document), 'utf8');
      return [...text.matchAll(SHELL_BLOCK)].map(([, indent = '', block = '']) => {
        const lines = block.split('\n').map((line) => line.replace(indent, ''));
        const first = lines.find((line) => /^\s*[^\s#]/.test(line)) ?? '';
        return { document, commands: lines.join('\n'), first };
      });
    }),
  );
  return blocks.flat();
}

export interface BlockNotRun {
  readonly document: string;
  /** Begins the first line of the block that is no comment. */
  readonly begins: string;
  readonly reason: string;
}

/** The rows below the heading "Commands of the documents" of docs/contributing.md. */
export async function blocksNotRun(): Promise<readonly BlockNotRun[]> {
  const page = await readFile(join(root, 'docs/contributing.md'), 'utf8');
  const section = /^## Commands of the documents\n([^]*?)(?=^## |$(?![^]))/m.exec(page)?.[1] ?? '';
  return [...section.matchAll(/^\| \[.*?\]\((.*?)\) +\| `(.*?)` +\| (.*?) +\|$/gm)].map(
    ([, link = '', begins = '', reason = '']) => ({
      document: join('docs', link),
      begins,
      reason,
    }),
  );
}

export function isOf({ document, first }: CommandBlock, row: BlockNotRun): boolean {
  return document === row.document && first.startsWith(row.begins);
}
