/** The OpenAPI document in the form of version 3.0, for code generators that do not know JSON Schema 2020-12. */

type Node = Record<string, unknown>;

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Names below which values are data of the API, and not parts of the document. */
const DATA = new Set(['default', 'example', 'examples', 'enum', 'mapping', 'required']);

/** That version knows licenses by addresses alone, and tools accept no other scheme than `https`. */
const NO_LICENSE = 'https://choosealicense.com/no-permission/';

/** @param document of version 3.1, as `openapi.ts` makes it; it is not changed */
export function openApi30(document: object): unknown {
  const { schemas } = (document as { readonly components: { readonly schemas: Readonly<Record<string, Node>> } })
    .components;
  return { ...(converted(document, schemas) as Node), openapi: '3.0.3' };
}

type Schemas = Readonly<Record<string, Node>>;

function converted(value: unknown, schemas: Schemas): unknown {
  if (Array.isArray(value)) return value.map((one) => converted(one, schemas));
  if (!isNode(value)) return value;
  const node: Node = {};
  for (const [name, member] of Object.entries(value)) {
    if (name === 'properties' && isNode(member)) {
      // Members may have the names of keywords.
      node[name] = Object.fromEntries(Object.entries(member).map(([key, schema]) => [key, converted(schema, schemas)]));
    } else node[name] = DATA.has(name) ? member : converted(member, schemas);
  }
  return withoutNewKeywords(node, schemas);
}

function withoutNewKeywords(given: Node, schemas: Schemas): Node {
  const { const: only, propertyNames: _names, identifier, examples, ...node } = given;
  if (only !== undefined) node['enum'] = [only];
  if (Array.isArray(examples)) node['example'] = examples[0];
  if (identifier !== undefined) node['url'] = NO_LICENSE;
  // Generators write defaults of these kinds as they are in JSON, which is not their language.
  if (typeof node['default'] === 'object') delete node['default'];
  return nullable(node, schemas);
}

/** `nullable` instead of the type `null`, and one type instead of several. */
function nullable(node: Node, schemas: Schemas): Node {
  if (Array.isArray(node['type'])) {
    const types = node['type'].filter((type) => type !== 'null');
    const { type: list, ...rest } = node;
    const isNullable = (list as unknown[]).includes('null');
    return { ...rest, ...(types.length === 1 && { type: types[0], ...(isNullable && { nullable: true }) }) };
  }
  for (const keyword of ['anyOf', 'oneOf']) {
    const list = node[keyword];
    if (!Array.isArray(list) || !list.some((one: Node) => one['type'] === 'null')) continue;
    const { [keyword]: _alternatives, ...rest } = node;
    const others = list.filter((one: Node) => one['type'] !== 'null') as Node[];
    const [only] = others;
    if (others.length !== 1 || only === undefined)
      return { ...rest, type: 'object', [keyword]: others, nullable: true };
    if (typeof only['$ref'] !== 'string') return { ...only, ...rest, nullable: true };
    // `nullable` has a meaning beside a type alone.
    const type = schemas[only['$ref'].split('/').at(-1) ?? '']?.['type'] ?? 'object';
    return { ...rest, type, allOf: [only], nullable: true };
  }
  // Siblings of a reference are ignored there.
  const { $ref, ...siblings } = node;
  if (typeof $ref !== 'string' || Object.keys(siblings).length === 0) return node;
  return { ...siblings, allOf: [{ $ref }] };
}
