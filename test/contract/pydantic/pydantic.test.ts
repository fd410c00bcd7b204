/**
 * Our answers to bad input against those of FastAPI and pydantic 2, recorded by record.py: the same
 * inputs declared with zod, the same requests, the same bodies.
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import {
  buildHttpServer,
  type HttpApp,
  type HttpServer,
  jsonMap,
  queryBoolean,
  queryInteger,
  stringMap,
  text,
  timestamp,
  uuid,
} from '#libs/platform/http/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';

const recordedSchema = z.object({
  cases: z.array(
    z.object({
      method: z.enum(['GET', 'POST']),
      path: z.string(),
      headers: z.record(z.string(), z.string()).default({}),
      body: z.string().optional(),
      status: z.int(),
      response: z.unknown(),
    }),
  ),
});
const recorded = recordedSchema.parse(
  JSON.parse(readFileSync(new URL('fixtures/recorded.json', import.meta.url), 'utf8')),
);

const leaf = z.object({ y: z.int() });
const inner = z.object({ x: text(), leaves: z.array(leaf).optional() });
const user = z.object({ type: z.literal('user'), user_id: text() });
const agent = z.object({ type: z.literal('agent'), agent_id: text(), leaf: leaf.nullable().optional() });
const participant = z.discriminatedUnion('type', [user, agent]);
const behavior = z.enum(['at_mentions_only', 'all_messages', 'intelligent']);
const pair = z.enum(['chat', 'thread']);
const textUpdate = z.object({ text: text() }).meta({ id: 'TextUpdate' });
const checklistUpdate = z.object({ items: z.array(text()) }).meta({ id: 'ChecklistUpdate' });

const everything = z.object({
  name: text({ min: 2, max: 5 }).optional(),
  letter: z.string().min(1).max(1).optional(),
  code: z
    .string()
    .regex(/^[a-z]+$/)
    .optional(),
  nick: text().nullable().optional(),
  count: z.int().min(1).max(10).optional(),
  inside: z.int().gt(0).lt(5).optional(),
  whole: z.int().optional(),
  even: z.int().multipleOf(2).optional(),
  ratio: z.number().min(0).max(1).optional(),
  share: z.number().gt(0.5).lt(1.5).optional(),
  flag: z.boolean().optional(),
  part: z.number().optional(),
  lax: z.boolean().optional(),
  tags: z.array(text()).min(1).max(2).optional(),
  meta_data: jsonMap().nullable().optional(),
  labels: stringMap().optional(),
  behavior: behavior.nullable().optional(),
  pair: pair.optional(),
  only: z.literal('only').optional(),
  either: z.literal(['this', 'that']).optional(),
  ident: uuid().nullable().optional(),
  at: timestamp().nullable().optional(),
  inner: inner.nullable().optional(),
  closed: z.strictObject({ a: text() }).nullable().optional(),
  participants: z.array(participant).default([]),
  update: z.union([textUpdate, checklistUpdate]).nullable().optional(),
  checked: z
    .string()
    .refine((value) => value === 'good', { error: 'only good is good' })
    .optional(),
});

const needed = z.object({
  url: text(),
  amount: z.int(),
  inner,
  behavior,
  participant,
  tags: z.array(text()),
  meta_data: jsonMap(),
});

function routes(app: HttpApp): void {
  const config = { public: true };
  const nothing = (): object => ({});
  app.post('/everything', { config, schema: { body: everything } }, nothing);
  app.post('/needed', { config, schema: { body: needed } }, nothing);
  app.post('/participant', { config, schema: { body: participant } }, nothing);
  const querystring = z.object({
    needed: text(),
    size: queryInteger({ min: 1, max: 100, default: 50 }),
    is_active: queryBoolean().optional(),
    kind: pair.optional(),
    name: text({ min: 2, max: 3 }).optional(),
    ident: uuid().optional(),
  });
  app.get('/query', { config, schema: { querystring } }, nothing);
  const combined = {
    params: z.object({ ident: uuid() }),
    querystring: z.object({ size: queryInteger() }),
    headers: z.object({ 'x-count': queryInteger() }),
    body: needed,
  };
  app.post('/combined/:ident', { config, schema: combined }, nothing);
}

let server: HttpServer;
beforeAll(async () => {
  server = await buildHttpServer({
    routes,
    authenticator: { authenticate: () => null },
    tokenSecret: 'a secret of sixteen bytes or more',
    metrics: createMetrics({ processMetrics: false }),
    info: { title: 'recorded', version: '1' },
  });
});
afterAll(() => server.close());

test('the recording holds what it is meant to hold', () => {
  expect(recorded.cases.length).toBeGreaterThan(200);
  const types = new Set(JSON.stringify(recorded.cases).match(/(?<="type":")[a-z_]+(?=","loc")/g));
  expect(types.size).toBeGreaterThan(30);
});

test.each(recorded.cases.map((recordedCase, index) => ({ ...recordedCase, index })))(
  'answers $method $path $body as FastAPI does ($index)',
  async ({ method, path, headers, body, status, response }) => {
    const answer = await server.app.inject({
      method,
      url: path,
      headers: method === 'POST' ? { ...headers, 'content-type': 'application/json' } : headers,
      ...(body !== undefined && { payload: body }),
    });
    expect({ status: answer.statusCode, response: answer.json<unknown>() }).toEqual({ status, response });
  },
);
