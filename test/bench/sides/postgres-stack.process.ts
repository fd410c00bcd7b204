/**
 * What a team would write instead of Parley: Fastify, zod, `pg`, and NOTIFY to `ws`. A post has an idempotency key and
 * the next sequence of its channel, is durable when it is answered, and its frame reaches the channel's sockets.
 */
import { createHash, randomUUID } from 'node:crypto';

import Fastify, { type FastifyRequest } from 'fastify';
import { Client, Pool } from 'pg';
import { type WebSocket, WebSocketServer } from 'ws';
import { z } from 'zod';

import { answerTasks } from '../child-process.ts';

export interface StackTask {
  readonly postgresUrl: string;
  /** Whether a post is six statements in a transaction, or a call of one function. */
  readonly variant: 'statements' | 'function';
  readonly apiKey: string;
  /** A document as Parley stores it: those of posts have its members. */
  readonly template: Readonly<Record<string, unknown>> & { readonly organization_id: string };
  readonly channelIds: readonly string[];
  /** JSON of the documents to read, with their sequences, in the first of the channels. */
  readonly documents: readonly { readonly id: string; readonly sequence: number; readonly json: string }[];
}

const SCHEMA = `
  DROP TABLE IF EXISTS api_keys, channels, interactions, idempotency_keys;
  CREATE TABLE api_keys (hash text PRIMARY KEY, organization_id uuid NOT NULL);
  CREATE TABLE channels (id uuid PRIMARY KEY, organization_id uuid NOT NULL, sequence bigint NOT NULL);
  CREATE TABLE interactions (
    id text PRIMARY KEY,
    organization_id uuid NOT NULL,
    channel_id uuid NOT NULL REFERENCES channels,
    sequence bigint NOT NULL,
    document text NOT NULL,
    UNIQUE (channel_id, sequence)
  );
  CREATE TABLE idempotency_keys (
    organization_id uuid,
    key text,
    interaction_id text NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, key)
  );
  CREATE OR REPLACE FUNCTION post_interaction(
    organization uuid, idempotency_key text, channel uuid, new_id text, document text
  ) RETURNS text LANGUAGE plpgsql AS $$
  DECLARE
    next bigint;
    posted text;
  BEGIN
    INSERT INTO idempotency_keys VALUES (organization, idempotency_key, new_id) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
      SELECT i.document INTO posted FROM interactions i JOIN idempotency_keys k ON i.id = k.interaction_id
        WHERE k.organization_id = organization AND k.key = idempotency_key;
      RETURN posted;
    END IF;
    UPDATE channels c SET sequence = sequence + 1 WHERE c.id = channel AND c.organization_id = organization
      RETURNING sequence INTO next;
    IF next IS NULL THEN RAISE EXCEPTION 'no such channel'; END IF;
    posted := replace(document, '"sequence":0,', '"sequence":' || next || ',');
    INSERT INTO interactions VALUES (new_id, organization, channel, next, posted);
    PERFORM pg_notify('frames', next || ' ' || posted);
    RETURN posted;
  END $$;
`;

const newInteraction = z.object({
  participant: z.discriminatedUnion('type', [
    z.object({ type: z.literal('non_authenticated_user'), user_metadata: z.record(z.string(), z.unknown()) }),
    z.object({ type: z.literal('authenticated_user'), user_id: z.uuid() }),
  ]),
  content: z
    .array(z.discriminatedUnion('type', [z.object({ type: z.literal('text'), text: z.string().min(1).max(100_000) })]))
    .min(1),
  content_role: z.enum(['user_message', 'agent_response']).default('user_message'),
  metadata: z.record(z.string(), z.unknown()).nullable().default(null),
});
const withId = z.object({ id: z.string().min(1).max(100) });
const withChannel = z.object({ id: z.uuid() });
const pageOf = z.object({
  size: z.coerce.number().int().min(1).max(100).default(50),
  before_sequence: z.coerce
    .number()
    .int()
    .positive()
    .default(2 ** 40),
});

/** The pool's default: more connections made posts slower on two cores. */
const CONNECTIONS = 10;
const JSON_TYPE = 'application/json; charset=utf-8';

answerTasks<StackTask, { url: string }>(async ({ postgresUrl, variant, ...task }) => {
  const pool = new Pool({ connectionString: postgresUrl, max: CONNECTIONS });
  await fill(pool, task);
  const frames = await startFrames(postgresUrl);
  const organizations = new Map<string, string>();

  async function organizationOf({ headers }: FastifyRequest): Promise<string> {
    const hash = createHash('sha256')
      .update(headers.authorization ?? '')
      .digest('hex');
    const known = organizations.get(hash);
    if (known !== undefined) return known;
    const { rows } = await pool.query('SELECT organization_id FROM api_keys WHERE hash = $1', [hash]);
    if (rows.length === 0) throw Object.assign(new Error('unknown key'), { statusCode: 401 });
    organizations.set(hash, rows[0].organization_id);
    return rows[0].organization_id;
  }

  const app = Fastify();
  app.post('/api/v1/channels/:id/interactions', async (request, reply) => {
    const organization = await organizationOf(request);
    const { id: channel } = withChannel.parse(request.params);
    const body = newInteraction.parse(request.body);
    const key = z.string().min(1).max(255).parse(request.headers['idempotency-key']);
    const id = randomUUID();
    const document = {
      ...task.template,
      ...body,
      id,
      created_at: new Date().toISOString(),
      channel_id: channel,
      interaction_id: id,
      span_id: id,
      sequence: 0,
    };
    const posted = await post(pool, variant, { organization, key, channel, id, document });
    return reply.header('content-type', JSON_TYPE).send(posted);
  });
  app.get('/api/v1/interactions/:id', async (request, reply) => {
    const organization = await organizationOf(request);
    const { id } = withId.parse(request.params);
    const { rows } = await pool.query({
      name: 'one',
      text: 'SELECT document FROM interactions WHERE id = $1 AND organization_id = $2',
      values: [id, organization],
    });
    if (rows.length === 0) return reply.code(404).send({ error: 'not found' });
    return reply.header('content-type', JSON_TYPE).send(rows[0].document);
  });
  app.get('/api/v1/channels/:id/interactions', async (request, reply) => {
    const organization = await organizationOf(request);
    const { id } = withChannel.parse(request.params);
    const { size, before_sequence: before } = pageOf.parse(request.query);
    const { rows } = await pool.query({
      name: 'page',
      text: `SELECT c.sequence AS total, p.items, p.first FROM channels c, LATERAL (
               SELECT string_agg(document, ',') AS items, min(sequence) AS first FROM (
                 SELECT document, sequence FROM interactions
                 WHERE channel_id = c.id AND sequence < $3 ORDER BY sequence DESC LIMIT $4
               ) newest
             ) p WHERE c.id = $1 AND c.organization_id = $2`,
      values: [id, organization, before, size],
    });
    if (rows.length === 0) return reply.code(404).send({ error: 'not found' });
    const { total, items, first } = rows[0];
    const meta = { total: Number(total), has_next: Number(first) > 1, next_cursor: first };
    return reply.header('content-type', JSON_TYPE).send(`{"items":[${items ?? ''}],"meta":${JSON.stringify(meta)}}`);
  });
  frames.attach(new WebSocketServer({ server: app.server, perMessageDeflate: false }));
  return { url: await app.listen({ host: '127.0.0.1', port: 0 }) };
});

interface NewPost {
  readonly organization: string;
  readonly key: string;
  readonly channel: string;
  readonly id: string;
  readonly document: { readonly sequence: number };
}

/** @returns JSON of the document; that of the first post for a key that was used before */
async function post(pool: Pool, variant: StackTask['variant'], posted: NewPost): Promise<string> {
  const { organization, key, channel, id, document } = posted;
  if (variant === 'function') {
    const { rows } = await pool.query({
      name: 'post',
      text: 'SELECT post_interaction($1, $2, $3, $4, $5) AS document',
      values: [organization, key, channel, id, JSON.stringify(document)],
    });
    return rows[0].document;
  }
  const client = await pool.connect();
  const ask = (name: string, text: string, values: readonly unknown[]) =>
    client.query({ name, text, values: [...values] });
  try {
    await client.query('BEGIN');
    const insertKey = 'INSERT INTO idempotency_keys VALUES ($1, $2, $3) ON CONFLICT DO NOTHING';
    if ((await ask('key', insertKey, [organization, key, id])).rowCount === 0) {
      const { rows } = await client.query(
        `SELECT document FROM interactions JOIN idempotency_keys k ON id = k.interaction_id
         WHERE k.organization_id = $1 AND k.key = $2`,
        [organization, key],
      );
      await client.query('ROLLBACK');
      return rows[0].document;
    }
    const count =
      'UPDATE channels SET sequence = sequence + 1 WHERE id = $1 AND organization_id = $2 RETURNING sequence';
    const [counted] = (await ask('count', count, [channel, organization])).rows;
    if (counted === undefined) throw Object.assign(new Error('no such channel'), { statusCode: 404 });
    const sequence = Number(counted.sequence);
    const json = JSON.stringify({ ...document, sequence });
    const insert = 'INSERT INTO interactions VALUES ($1, $2, $3, $4, $5)';
    await ask('insert', insert, [id, organization, channel, sequence, json]);
    await ask('notify', "SELECT pg_notify('frames', $1)", [`${sequence} ${json}`]);
    await client.query('COMMIT');
    return json;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  } finally {
    client.release();
  }
}

/** Passes notifications on to the sockets of their channels. */
async function startFrames(url: string): Promise<{ attach(server: WebSocketServer): void }> {
  const sockets = new Map<string, Set<WebSocket>>();
  const listener = new Client(url);
  await listener.connect();
  listener.on('notification', ({ payload = '' }) => {
    const [sequence = ''] = payload.split(' ', 1);
    const json = payload.slice(sequence.length + 1);
    const channel = /"channel_id":"([^"]+)"/.exec(json)?.[1] ?? '';
    const at = /"created_at":"([^"]+)"/.exec(json)?.[1] ?? '';
    const frame = `{"frame":"event","seq":${sequence},"type":"interaction.posted","at":"${at}","data":${json}}`;
    for (const socket of sockets.get(channel) ?? []) socket.send(frame);
  });
  await listener.query('LISTEN frames');
  return {
    attach(server) {
      server.on('connection', (socket, request) => {
        const channel = /channels\/([^/]+)\/websocket/.exec(request.url ?? '')?.[1] ?? '';
        const all = sockets.get(channel) ?? new Set();
        sockets.set(channel, all.add(socket));
        socket.on('close', () => all.delete(socket));
        socket.on('error', () => undefined);
        socket.send('{"frame":"hello"}');
      });
    },
  };
}

const AT_ONCE = 5_000;

async function fill(
  pool: Pool,
  { apiKey, template, channelIds, documents }: Omit<StackTask, 'postgresUrl' | 'variant'>,
): Promise<void> {
  const organization = template.organization_id;
  const hash = createHash('sha256').update(`Bearer ${apiKey}`).digest('hex');
  await pool.query(SCHEMA);
  await pool.query('INSERT INTO api_keys VALUES ($1, $2)', [hash, organization]);
  await pool.query('INSERT INTO channels SELECT unnest($1::uuid[]), $2, $3', [
    channelIds,
    organization,
    Math.max(1, ...documents.map(({ sequence }) => sequence)),
  ]);
  for (let from = 0; from < documents.length; from += AT_ONCE) {
    const some = documents.slice(from, from + AT_ONCE);
    await pool.query(
      'INSERT INTO interactions SELECT id, $1, $2, sequence, document FROM unnest($3::text[], $4::bigint[], $5::text[]) AS d (id, sequence, document)',
      [
        organization,
        channelIds[0],
        some.map(({ id }) => id),
        some.map(({ sequence }) => sequence),
        some.map(({ json }) => json),
      ],
    );
  }
  await pool.query('VACUUM ANALYZE interactions');
}
