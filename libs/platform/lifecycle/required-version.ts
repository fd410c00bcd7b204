import { createRequire } from 'node:module';

/**
 * For a library whose internals Parley replaces (decision 89): the replacements were written for one version.
 *
 * @throws Error that names both versions, if another one is installed
 */
export function requireVersion(library: string, expected: string): void {
  // Not by a schema: threads of search would load zod, half of their start, for this line alone.
  const { version }: { version?: unknown } = createRequire(import.meta.url)(`${library}/package.json`);
  if (version === expected) return;
  throw new Error(
    `Parley replaces internals of ${library} ${expected}, and ${String(version)} is installed: install ${library}@${expected}`,
  );
}
