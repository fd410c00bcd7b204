'use strict';
/**
 * The module `parley/testing` of the package, for `import` and `require`. It has the exports of index.ts.
 *
 * Jest and some pools of Vitest run test files in a context of `node:vm`, with a module loader of their own. Parley does
 * not run there: errors of Node are no instances of that context's `Error`, and its loader ends with the test file. So
 * Node's own loader loads Parley, in Node's own context.
 */
const { pathToFileURL } = require('node:url');
const vm = require('node:vm');

const isInContext = vm.runInThisContext('Error') !== Error;
const importNatively = isInContext
  ? vm.runInThisContext('(url) => import(url)', {
      importModuleDynamically: vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    })
  : (url) => import(url);
const load = () => importNatively(new URL('index.js', pathToFileURL(__filename)).href);

exports.startParley = async (options) => (await load()).startParley(options);
exports.testParley = async (access) => (await load()).testParley(access);
