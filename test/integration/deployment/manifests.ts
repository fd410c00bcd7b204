/** Reads the deployment files and validates them against the schemas that Compose and Kubernetes publish. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { parseAllDocuments, type Document } from 'yaml';
import { asRecord } from '#test/support/log-reader.ts';

const ROOT = join(import.meta.dirname, '../../..');

export const fileOf = (path: string): Promise<string> => readFile(join(ROOT, path), 'utf8');

/**
 * All documents of a YAML file, with merges and aliases resolved.
 * @throws Error for invalid YAML
 */
export async function documentsOf(path: string): Promise<readonly Record<string, unknown>[]> {
  const parsed = parseAllDocuments(await fileOf(path), { merge: true, logLevel: 'error' });
  if (!Array.isArray(parsed)) throw new Error(`${path} is empty`);
  return parsed.map((document: Document) => {
    for (const error of document.errors) throw error;
    return asRecord(document.toJS());
  });
}

export async function schemaOf(name: string): Promise<Record<string, unknown>> {
  return asRecord(JSON.parse(await fileOf(`test/fixtures/schemas/${name}`)));
}

/**
 * Validators by their location in the schema. The formats (`duration`) are those of the programs that read the files;
 * no library knows them.
 */
export function validatorsOf(schema: Record<string, unknown>): (pointer?: string) => ValidateFunction | undefined {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, validateSchema: false });
  ajv.addSchema({ ...schema, $id: 'schema' });
  return (pointer = '') => ajv.getSchema(`schema#${pointer}`);
}

/** Validation errors, one line each. */
export function problemsOf(validate: ValidateFunction | undefined, value: unknown): readonly string[] {
  if (validate === undefined) return ['there is no schema for it'];
  if (validate(value)) return [];
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }: ErrorObject) => `${instancePath}: ${message} ${JSON.stringify(params)}`,
  );
}

/** The value at a path of keys and indices; undefined where there is none. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  let found = value;
  for (const key of path) found = typeof found === 'object' && found !== null ? Reflect.get(found, key) : undefined;
  return found;
}

export function strings(value: unknown): Record<string, string> {
  return Object.fromEntries(Object.entries(asRecord(value)).map(([name, one]) => [name, String(one)]));
}
