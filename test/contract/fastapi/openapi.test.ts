/** Parley's OpenAPI document against that of a FastAPI application with the contract's models (see record.py). */
import { readFileSync } from 'node:fs';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';

import { startTestApi, type TestApi } from '#test/support/test-api.ts';

import { schemaDifferences } from './schema-differences.ts';

/** Differences that Parley means. */
const MEANT = [
  // PATCH: absent members stay as they are.
  'PATCH /channels/{id} body.name: default is null, not ""',
  // The contract says that there is a default image, and not which.
  'PATCH /channels/{id} 200.participants[] "agent".organization.owner.image_url: default is null, not "<default avatar>"',
  // The contract says that an empty object is accepted, and shows no default.
  'POST /agents/{id}/prompt body.prompt: default is "", not null',
  // Its members are always there, so an empty object would be no default of it.
  'GET /crawls 200.items[].crawl_stats: default is null, not {}',
];

const contract: unknown = JSON.parse(readFileSync(new URL('fixtures/openapi.json', import.meta.url), 'utf8'));

let api: TestApi;
let document: unknown;

beforeAll(async () => {
  api = await startTestApi();
  document = (await api.call({ method: 'GET', url: '/openapi.json' })).json;
});
afterAll(() => api.stop());

it('has all that the contract has: parameters, members, nulls, defaults and types', () => {
  expect(schemaDifferences(contract, document)).toEqual(MEANT);
});

describe('the comparison', () => {
  it('finds no difference between the contract and itself', () => {
    expect(schemaDifferences(contract, contract)).toEqual([]);
  });

  const node = z.record(z.string(), z.any());
  const crawl = (of: unknown) => node.parse(node.parse(of)['components'].schemas.Crawl);
  const list = (of: unknown) => node.parse(node.parse(of)['paths']['/api/v1/crawls'].get);

  it.each<[string, (of: unknown) => void, string]>([
    ['an absent member', (of) => delete crawl(of)['properties'].status, '200.items[].status: absent'],
    ['another type', (of) => (crawl(of)['properties'].scan_depth = { type: 'string' }), 'type is "string"'],
    ['a missing null', (of) => (crawl(of)['properties'].status = { type: 'string' }), 'null is false, not true'],
    ['a missing default', (of) => delete crawl(of)['properties'].is_active.default, 'default is null, not true'],
    ['a member that may be absent', (of) => crawl(of)['required'].shift(), 'required is false, not true'],
    ['an absent parameter', (of) => list(of)['parameters'].shift(), 'GET /crawls query size: absent'],
    ['a parameter without its default', (of) => delete list(of)['parameters'][1].schema.default, 'query page: default'],
    ['an absent operation', (of) => delete node.parse(of)['paths']['/api/v1/crawls'].get, 'GET /crawls: absent'],
    ['an absent value', (of) => node.parse(of)['components'].schemas.ContentRole.enum.pop(), '.content_role: enum is'],
    [
      'an absent kind of content',
      (of) => node.parse(of)['components'].schemas.Interaction.properties.content.items.oneOf.pop(),
      '.content[]: no "cancel_payment"',
    ],
  ])('finds %s', (_what, change, difference) => {
    const changed = structuredClone(contract);
    change(changed);
    expect(schemaDifferences(contract, changed).join('\n')).toContain(difference);
  });
});
