import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from 'vitest';

import { type GeneratedFile, generatedTypes } from '#test/client-types/generated-types.ts';
import { typesOf } from '#test/client-types/openapi-typescript.ts';
import { type Answer, startTestApi } from '#test/support/test-api.ts';

let openApi: Answer['json'];
let files: readonly GeneratedFile[];
beforeAll(async () => {
  const api = await startTestApi();
  openApi = (await api.call({ method: 'GET', url: '/openapi.json' })).json;
  await api.stop();
  files = await generatedTypes(openApi);
});

it("the client's types match the API and its frames (npm run client:generate writes them)", async () => {
  const stale: string[] = [];
  for (const { path, text } of files) if ((await readFile(path, 'utf8')) !== text) stale.push(basename(path));
  expect(files).toHaveLength(2);
  expect(stale).toEqual([]);
});

it('a change of the API changes the types', async () => {
  const changed = structuredClone(openApi);
  changed.components.schemas.Channel.properties.weather = { type: 'string' };
  const [api] = await generatedTypes(changed);
  expect(api?.text).not.toBe(files[0]?.text);
  expect(api?.text).toContain('weather?: string;');
});

const COMPARISON = `
import type * as Compact from './compact';
import type * as Full from './full';
type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/** Without intersections: they are never identical to the object that they make. */
type Flat<T> = { [K in keyof T]: T[K] };
type Parts<T> = { [K in keyof T]: Flat<T[K]> };
type Operation<T> = { [K in keyof T]: K extends 'parameters' ? Flat<Parts<T[K]>> : Flat<T[K]> };
type Operations<T> = { [K in keyof T]: Operation<T[K]> };
type Paths<T> = { [K in keyof T]: Operations<T[K]> };
export const operations: Equal<Operations<Compact.operations>, Operations<Full.operations>> = true;
export const paths: Equal<Paths<Compact.paths>, Paths<Full.paths>> = true;
export const components: Equal<Compact.components, Full.components> = true;
`;

it('the types are those of openapi-typescript', async () => {
  const [compact] = files;
  const folder = await mkdtemp(join(tmpdir(), 'parley-test-types-'));
  try {
    await writeFile(join(folder, 'full.ts'), await typesOf(openApi));
    await writeFile(join(folder, 'compact.ts'), compact?.text ?? '');
    await writeFile(join(folder, 'comparison.ts'), COMPARISON);
    const tsc = join(import.meta.dirname, '../../../node_modules/.bin/tsc');
    const options = ['--noEmit', '--strict', '--exactOptionalPropertyTypes'];
    const compiled = await promisify(execFile)(tsc, [...options, '--types', '', 'comparison.ts'], {
      cwd: folder,
    }).catch((error: unknown) => error);
    expect(compiled).toMatchObject({ stdout: '' });
  } finally {
    await rm(folder, { recursive: true });
  }
});
