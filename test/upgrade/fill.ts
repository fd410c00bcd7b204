/** Fills a Parley with entities of every kind, in all of their states, through its API. */
import { join } from 'node:path';
import { type Body, Caller, itemsOf } from './caller.ts';
import { type Agents, fillAgents, fillAnswers } from './fill-answers.ts';
import { fillChannels } from './fill-channels.ts';
import { fillKnowledge } from './fill-knowledge.ts';
import { fillLater } from './fill-later.ts';
import type { Neighbours } from './neighbours.ts';
import type { Values } from './reads.ts';
import type { Started } from './server.ts';

export interface Filled {
  /** The first one may do everything. */
  readonly callers: Readonly<Record<string, Caller>>;
  /** Of filters. */
  readonly values: Values;
  /** Of entities that no list has, by the path of their list. */
  readonly ids: Readonly<Record<string, string[]>>;
  readonly channels: readonly string[];
  /** Requests with an `Idempotency-Key`, which answer the same again. */
  readonly repeatable: readonly Repeatable[];
}

export interface Repeatable {
  readonly path: string;
  readonly body: Body;
  readonly headers: Readonly<Record<string, string>>;
}

/** @param round part of names, so that a folder can be filled again */
export async function fill(parley: Started, key: string, neighbours: Neighbours, round: string): Promise<Filled> {
  const admin = new Caller(parley.baseUrl, key);
  const people = await fillPeople(admin, round);
  const knowledge = await fillKnowledge(admin, neighbours, round);
  const agents = await fillAgents(admin, knowledge.graph, neighbours, round);
  const channels = await fillChannels(admin, people, agents.helper, round);
  const { member } = await fillLater(admin, people.userCaller, channels[0] ?? '', round);
  await fillAnswers(admin, agents, people.ada);
  await parley.parley('import', join(import.meta.dirname, '../../docs/samples/assistant.jsonl'), '--json');
  return {
    callers: {
      admin,
      user: people.userCaller,
      service: people.serviceCaller,
      agent: agents.externalCaller,
      other: people.otherCaller,
      nobody: admin.withKey(null),
      ...(member !== null && { member }),
    },
    values: valuesOf(agents),
    ids: { ...knowledge.ids, '/api/v1/users': [people.deactivated] },
    channels: [...channels, knowledge.channel],
    repeatable: [
      repeatable(
        `/api/v1/channels/${knowledge.channel}/interactions`,
        { content: [{ type: 'text', text: 'Once' }] },
        round,
      ),
      repeatable('/api/v1/channels', { name: `Once ${round}` }, round),
      repeatable('/api/v1/agents', { name: '' }, round),
    ],
  };
}

const repeatable = (path: string, body: Body, round: string): Repeatable => ({
  path,
  body,
  headers: { 'idempotency-key': `${round} ${path}`.replaceAll(' ', '-').slice(0, 250) },
});

const valuesOf = ({ helper, external }: Agents): Values => ({
  query: ['*', 'lighthouse', 'Ada', 'Bremen ferry'],
  q: ['lighthouse', 'hello'],
  agent: [helper, external],
  agent_id: [helper, external],
  limit: ['1', '50'],
  valid_at: ['2024-01-01T00:00:00Z', '2025-01-01T00:00:00Z'],
  status: ['Ready', 'Failed', 'Completed', 'Cancelled', 'completed', 'failed', 'cancelled', 'running'],
  include: ['incomplete', 'nested', 'incomplete,nested'],
});

async function fillPeople(admin: Caller, round: string) {
  const users = '/api/v1/users';
  const ada = await admin.create(users, { display_name: `Ada ${round}`, email: `ada-${round}@example.com` });
  const grace = await admin.create(users, { display_name: 'Grace', image_url: 'https://example.com/grace.png' });
  const deactivated = await admin.create(users, { display_name: 'Gone' });
  await admin.patch(`${users}/${ada}`, { display_name: `Ada L. ${round}` });
  await admin.patch(`${users}/${ada}`, { email: `lovelace-${round}@example.com` });
  await admin.patch(`${users}/${ada}`, { image_url: 'https://example.com/ada.png' });
  await admin.patch(`${users}/${grace}`, { display_name: 'Grace H.', email: null, image_url: null });
  await admin.delete(`${users}/${deactivated}`);
  const keys = '/api/v1/keys';
  const issue = (body: Record<string, unknown>): Promise<Record<string, unknown>> => admin.post(keys, body);
  const scopes = ['read', 'write'];
  const user = await issue({ name: 'ada', scopes, principal: { type: 'user', id: ada } });
  const service = await issue({
    name: 'service',
    scopes: [...scopes, 'impersonate'],
    principal: { type: 'service', id: `backend-${round}` },
  });
  const rotated = await issue({ name: 'rotated', scopes, expires_at: '2090-01-01T00:00:00Z' });
  await admin.post(`${keys}/${String(rotated['id'])}/rotate`, { grace_seconds: 0 });
  const revoked = await issue({ name: 'revoked', scopes: ['read'] });
  await admin.post(`${keys}/${String(revoked['id'])}/revoke`);
  // Newest first.
  const own = `/api/v1/organizations/${String(itemsOf(await admin.get('/api/v1/organizations')).at(-1)?.['id'])}`;
  await admin.patch(own, { name: `Harbour ${round}`, application: 'app_main' });
  await admin.patch(own, { owner_id: ada });
  const other = await admin.create('/api/v1/organizations', { name: `Other ${round}` });
  const foreign = await issue({
    name: 'other',
    scopes: [...scopes, 'admin', 'impersonate'],
    organization_id: other,
    principal: { type: 'service', id: 'x' },
  });
  const otherCaller = admin.withKey(String(foreign['key']));
  await otherCaller.create('/api/v1/channels', { name: 'Elsewhere' });
  return {
    ada,
    grace,
    deactivated,
    userCaller: admin.withKey(String(user['key'])),
    serviceCaller: admin.withKey(String(service['key'])),
    otherCaller,
  };
}
