import { posix } from 'node:path';

/** `'#libs/kernel/ids.ts'`, in an import of any kind. */
const OWN = /(?<=\b(?:from|import)\s*\(?\s*)(['"])#((?:libs|services|infra)\/[^'"]+\.ts)\1/g;
/** `new URL('./worker-thread.ts', import.meta.url)` */
const URL_OF_CODE = /(?<=\bnew URL\(\s*['"]\.{1,2}\/[^'"]+)\.ts(?=['"]\s*,\s*import\.meta\.url)/g;
const URL_OF_FILE = /\bnew URL\(\s*['"](\.{1,2}\/[^'"]+)['"]\s*,\s*import\.meta\.url/g;
/** `from './ids.js'`, `import('./ids.js')`; also `#…`, which means nothing in the package. */
const IMPORTED_FILE = /\b(?:from|import)\s*\(?\s*['"]((?:\.{1,2}\/|#)[^'"]+)['"]/g;

/**
 * The source of a file with specifiers that do not depend on the repository: `#libs/…` becomes relative, and URLs of
 * `.ts` files become those of the compiled `.js` files.
 *
 * @param path relative to the project's root, such as `services/testing/index.ts`
 */
export function portableSpecifiers(path: string, text: string): string {
  return text
    .replace(OWN, (_, quote: string, target: string) => {
      const way = posix.relative(posix.dirname(path), target);
      return `${quote}${way.startsWith('.') ? way : `./${way}`}${quote}`;
    })
    .replace(URL_OF_CODE, '.js');
}

/** Files that the code names relative to itself: those that it imports, and those that it reads at run time. */
export function referencedFiles(code: string): readonly string[] {
  return [IMPORTED_FILE, URL_OF_FILE].flatMap((form) => [...code.matchAll(form)].map(([, name = '']) => name));
}
