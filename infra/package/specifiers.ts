import { posix } from 'node:path';

/** `'#libs/kernel/ids.ts'`, in an import of any kind. */
const OWN = /(?<=\b(?:from|import)\s*\(?\s*)(['"])#((?:libs|services|infra)\/[^'"]+\.ts)\1/g;
/** `new URL('./worker-thread.ts', import.meta.url)` */
const URL_OF_CODE = /(?<=\bnew URL\(\s*['"]\.{1,2}\/[^'"]+)\.ts(?=['"]\s*,\s*import\.meta\.url)/g;
const URL_OF_FILE = /\bnew URL\(\s*['"](\.{1,2}\/[^'"]+)['"]\s*,\s*import\.meta\.url/g;

/**
 * The source of a file with specifiers that hold wherever the tree of files stands: `#libs/…` becomes relative,
 * which the compiler can follow and rewrite; addresses of code are those of the JavaScript made of it.
 *
 * @param path from the project's root, `services/testing/index.ts`
 */
export function portableSpecifiers(path: string, text: string): string {
  return text
    .replace(OWN, (_, quote: string, target: string) => {
      const way = posix.relative(posix.dirname(path), target);
      return `${quote}${way.startsWith('.') ? way : `./${way}`}${quote}`;
    })
    .replace(URL_OF_CODE, '.js');
}

/** The files that code looks for beside itself at run time. */
export function referencedFiles(code: string): readonly string[] {
  return [...code.matchAll(URL_OF_FILE)].map(([, name = '']) => name);
}
