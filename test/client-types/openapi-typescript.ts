/**
 * openapi-typescript writes types with the compiler's old API, which TypeScript 7 lacks. `@ts-morph/common` contains
 * a compiler that has it, so `typescript` resolves to that one, for openapi-typescript alone.
 */
import { registerHooks } from 'node:module';
import type { ts } from '@ts-morph/common';

registerHooks({
  resolve(specifier, context, next) {
    if (specifier !== 'typescript' || context.parentURL?.includes('/node_modules/openapi-typescript/') !== true) {
      return next(specifier, context);
    }
    const compiler = JSON.stringify(import.meta.resolve('@ts-morph/common'));
    const source = `import { ts } from ${compiler}; export default ts;`;
    return { url: `data:text/javascript,${encodeURIComponent(source)}`, shortCircuit: true };
  },
});

// After the hook: a static import would come before it.
const { default: openapiTS, astToString } = await import('openapi-typescript');

/**
 * The types of an OpenAPI document, as the text of a module. Members with a default are optional for a caller.
 * @param change of the declarations before they become text
 */
export async function typesOf(
  document: object,
  change: (declarations: readonly ts.Node[]) => ts.Node[] = (declarations) => [...declarations],
): Promise<string> {
  // Parsed from text, because the generator modifies the object that it gets.
  const declarations = await openapiTS(JSON.stringify(document), { alphabetize: true, defaultNonNullable: false });
  return astToString(change(declarations));
}
