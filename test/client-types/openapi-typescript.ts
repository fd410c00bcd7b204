/**
 * openapi-typescript writes types with the compiler's old API, which TypeScript 7 does not have any more.
 * `@ts-morph/common` carries a compiler that has it, so `typescript` means that one, for openapi-typescript alone.
 */
import { registerHooks } from 'node:module';

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

/** The types of an OpenAPI document, as the text of a module. What has a default may be left out by a caller. */
export async function typesOf(document: object): Promise<string> {
  // Read from text, for the generator takes an object for its own and writes in it.
  return astToString(await openapiTS(JSON.stringify(document), { alphabetize: true, defaultNonNullable: false }));
}
