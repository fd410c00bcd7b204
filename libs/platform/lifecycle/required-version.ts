import { createRequire } from 'node:module';
import { z } from 'zod';

const manifest = z.object({ version: z.string() });

/**
 * For a library whose internals Parley replaces (decision 89): the replacements were written for one version.
 *
 * @throws Error that names both versions, if another one is installed
 */
export function requireVersion(library: string, expected: string): void {
  const { version } = manifest.parse(createRequire(import.meta.url)(`${library}/package.json`));
  if (version === expected) return;
  throw new Error(
    `Parley replaces internals of ${library} ${expected}, and ${version} is installed: install ${library}@${expected}`,
  );
}
