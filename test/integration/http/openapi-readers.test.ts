/** The OpenAPI documents of the whole API as code generators read them. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { startTestApi, type TestApi } from '#test/support/test-api.ts';

// eslint-disable-next-line typescript/no-explicit-any
type Node = any;

let api: TestApi;
const documents: Record<string, Node> = {};

beforeAll(async () => {
  api = await startTestApi();
  for (const name of ['openapi', 'openapi-3.0']) {
    documents[name] = (await api.call({ method: 'GET', url: `/${name}.json` })).json;
  }
});
afterAll(() => api.stop());

/** All objects of a document, with their paths. */
function* nodesOf(node: Node, path = ''): Generator<readonly [string, Node]> {
  if (typeof node !== 'object' || node === null) return;
  if (!Array.isArray(node)) yield [path, node];
  for (const [name, value] of Object.entries(node)) yield* nodesOf(value, `${path}/${name}`);
}

const found = (document: Node, is: (node: Node, path: string) => boolean): string[] =>
  [...nodesOf(document)].filter(([path, node]) => is(node, path)).map(([path]) => path);

/** Whether a value of the schema is an object with declared members. */
const isShaped = (schema: Node): boolean => '$ref' in schema || 'properties' in schema;

/** Alternatives other than null. */
const alternatives = (node: Node): Node[] =>
  [node.oneOf, node.anyOf].flatMap((list) => list ?? []).filter((one) => one.type !== 'null' && !('nullable' in one));

describe.each(['openapi', 'openapi-3.0'])('%s.json', (name) => {
  it('names all alternatives of unions of objects, and how they differ', () => {
    const unions = (node: Node): boolean => Array.isArray(node.oneOf ?? node.anyOf) && alternatives(node).length > 1;
    const unnamed = (node: Node): boolean => alternatives(node).some((one) => 'properties' in one);
    // The tag of these may be left out.
    const isOptional = (path: string): boolean => path.startsWith('/components/schemas/ToolCallUpdateContentInput/');
    const undiscriminated = (node: Node): boolean => alternatives(node).every(isShaped) && !('discriminator' in node);
    const wrong = found(documents[name], (node) => unions(node) && (unnamed(node) || undiscriminated(node)));
    expect(wrong.filter((path) => !isOptional(path))).toEqual([]);
  });

  it('gives names to the objects of all unions', () => {
    const isMap = (one: Node): boolean => 'additionalProperties' in one;
    const unions = found(documents[name], (node) => alternatives(node).length > 1 && alternatives(node).some(isMap));
    expect(unions).toEqual([]);
  });

  it('has no two paths that one address may mean', () => {
    const paths = Object.keys(documents[name].paths).map((path) => path.split('/'));
    const isFree = (segment = ''): boolean => segment.startsWith('{');
    const meet = (one: string[], other: string[]): boolean => {
      if (one.length !== other.length) return false;
      const crossings = new Set(one.map((segment, index) => Number(isFree(segment)) - Number(isFree(other[index]))));
      const canMeet = one.every(
        (segment, index) => segment === other[index] || isFree(segment) || isFree(other[index]),
      );
      return canMeet && crossings.has(1) && crossings.has(-1);
    };
    expect(paths.flatMap((one) => paths.filter((other) => meet(one, other)).map(() => one.join('/')))).toEqual([]);
  });

  it('has no pattern with a comma, which Go reads as the end of a tag', () => {
    const texts = (node: Node, path: string): boolean =>
      typeof node.pattern === 'string' && node.pattern.includes(',') && path.startsWith('/components/');
    expect(found(documents[name], texts)).toEqual([]);
  });

  it('names no schema as a constructor of another', () => {
    const names = Object.keys(documents[name].components.schemas);
    // Go's generators name constructors so.
    expect(names.filter((one) => one.startsWith('New'))).toEqual([]);
  });

  it('names enums that occur more than once', () => {
    const places = new Map<string, string[]>();
    for (const [path, { enum: values }] of nodesOf(documents[name])) {
      if (!Array.isArray(values) || values.length < 2 || /^\/components\/schemas\/\w+$/.test(path)) continue;
      const key = JSON.stringify(values.filter((value) => value !== null));
      places.set(key, [...(places.get(key) ?? []), path]);
    }
    expect([...places.values()].filter((paths) => paths.length > 1)).toEqual([]);
  });

  it('says of times that they are times, and of files that they are files', () => {
    const isTime = /\/properties\/(\w+_at|created|modified|started|at|expires)$/;
    const notTimes = found(
      documents[name].components,
      (node, path) => isTime.test(path) && !/date-time/.test(JSON.stringify(node)),
    );
    expect(notTimes).toEqual([]);
    const contents = [...nodesOf(documents[name])].filter(([path]) => path.endsWith('/application/octet-stream'));
    expect(contents.map(([, { schema }]) => schema.format)).toEqual(contents.map(() => 'binary'));
    expect(contents.length).toBeGreaterThan(1);
  });

  it('declares the headers that all operations share', () => {
    const headers = (path: string, method: string) =>
      documents[name].paths[path][method].parameters
        .map((one: Node) => (one.$ref ? documents[name].components.parameters[one.$ref.split('/').at(-1)] : one))
        .filter((one: Node) => one.in === 'header')
        .map((one: Node) => one.name);
    expect(headers('/api/v1/channels/{id}', 'patch')).toEqual(['Idempotency-Key', 'If-Match']);
    expect(headers('/api/v1/channels/{id}', 'get')).toEqual(['Parley-Position', 'If-None-Match']);
    const { responses } = documents[name].paths['/api/v1/channels/{id}'].patch;
    expect(Object.keys(responses['200'].headers)).toEqual(
      expect.arrayContaining(['ETag', 'Parley-Position', 'Idempotency-Replayed', 'X-Request-Id']),
    );
  });

  it('describes itself', () => {
    const { info, tags, paths } = documents[name];
    expect(info).toMatchObject({ license: { name: expect.any(String) }, contact: { name: expect.any(String) } });
    const used = [...nodesOf(paths)].flatMap(([, node]) => (Array.isArray(node.tags) ? node.tags : []));
    expect(new Set(tags.map((tag: Node) => tag.name))).toEqual(new Set(used));
  });
});

it('has an example of each body, which is valid', () => {
  const { paths, components } = documents['openapi'];
  const ajv = new Ajv2020({ strict: false, validateFormats: false }).addSchema({ $id: 'api', components });
  const bodies = [...nodesOf(paths)].flatMap(([, node]) => node.requestBody?.content?.['application/json'] ?? []);
  const names = new Set<string>(bodies.map(({ schema }: Node) => schema.$ref.split('/').at(-1)));
  expect(names.size).toBeGreaterThan(30);
  const wrong = [...names].filter((name) => {
    const [example] = components.schemas[name].examples ?? [];
    return example === undefined || ajv.validate({ $ref: `api#/components/schemas/${name}` }, example) !== true;
  });
  expect(wrong).toEqual([]);
  expect(documents['openapi-3.0'].components.schemas.ChannelCreateInput.example).toEqual({ name: 'Order 4711' });
});

it('openapi-3.0.json has no keyword of 3.1', () => {
  const document = documents['openapi-3.0'];
  expect(document.openapi).toBe('3.0.3');
  const isNew = (node: Node, path: string): boolean =>
    !/\/(properties|schemas|default|example)$/.test(path) &&
    (Array.isArray(node.type) ||
      node.type === 'null' ||
      'const' in node ||
      'propertyNames' in node ||
      Array.isArray(node.examples));
  expect(found(document, isNew)).toEqual([]);
  expect(Object.keys(document.paths)).toEqual(Object.keys(documents['openapi'].paths));
});
