import { describe, expect, it } from 'vitest';
import { portableSpecifiers, referencedFiles } from './specifiers.ts';

const from = (path: string) => (text: string) => portableSpecifiers(path, text);

describe('specifiers outside of the repository', () => {
  it.each([
    [`import { x } from '#libs/kernel/ids.ts';`, `import { x } from '../../libs/kernel/ids.ts';`],
    [`import type {\n  X,\n} from "#infra/a/index.ts";`, `import type {\n  X,\n} from "../../infra/a/index.ts";`],
    [`export * from '#services/cli/a/b.ts';`, `export * from './a/b.ts';`],
    [`import '#services/features.ts';`, `import '../features.ts';`],
    [`await import('#services/cli/main.ts');`, `await import('./main.ts');`],
    [`new URL('./main.ts', import.meta.url)`, `new URL('./main.js', import.meta.url)`],
  ])('%s', (inside, outside) => {
    expect(from('services/cli/main.ts')(inside)).toBe(outside);
  });

  it.each([
    `import { z } from 'zod';`,
    `import { x } from './ids.ts';`,
    `const text = 'see #libs/kernel/ids.ts';`,
    `new URL('./lua/tickets.lua', import.meta.url)`,
    `new URL(url)`,
  ])('that are portable do not change: %s', (text) => {
    expect(from('services/cli/main.ts')(text)).toBe(text);
  });

  it('names the files that the code reads at run time', () => {
    const code = `f(new URL('./lua/a.lua', import.meta.url)); new Worker(new URL("../b.js", import.meta.url)); new URL(url);`;
    expect(referencedFiles(code)).toEqual(['./lua/a.lua', '../b.js']);
  });

  it('names the files that the code imports, and no packages', () => {
    const code = `import { x } from './x.js';\nexport * from "../y.js";\nimport './z.js';\nawait import('./w.js');\nimport '#test/v.ts';\nimport { z } from 'zod';`;
    expect(referencedFiles(code)).toEqual(['./x.js', '../y.js', './z.js', './w.js', '#test/v.ts']);
  });
});
