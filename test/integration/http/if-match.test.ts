/* `If-Match` on every request that changes something is honoured or refused, and never ignored. */
import { generateKeyPairSync } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { systemClock } from '#libs/kernel/clock.ts';
import { accept } from '#libs/kernel/decider.ts';
import { newId } from '#libs/kernel/ids.ts';
import { eventually } from '#test/support/eventually.ts';
import { asRecord } from '#test/support/log-reader.ts';
import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;
let channel: string;
let message: string;
let incomplete: string;
let participant: string;
let user: string;
let key: string;
let graph: string;
let edge: string;
let document: string;
let crawl: string;
let report: string;
let media: string;
let agent: string;
let widget: string;
let run: string;
let external: string;
let agentKey: string;
let upload: string;
let tokenIssuer: string;
const publicKey = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
const newIssuer = { name: 'a', issuer: 'https://app.example', audience: 'parley', keys: [publicKey] };

const call = (one: Call): Promise<Answer> => api.call({ key: api.rootKey, ...one });

async function made(method: Call['method'], url: string, body: object): Promise<Answer['json']> {
  const answer = await call({ method, url, body });
  expect(answer).toMatchObject({ status: 200 });
  return answer.json;
}

const text = [{ type: 'text', text: 'hello' }];

beforeAll(async () => {
  api = await startTestApi();
  channel = (await made('POST', '/api/v1/channels', { name: 'a' })).id;
  const posts = `/api/v1/channels/${channel}/interactions`;
  message = (await made('POST', posts, { content: text, content_role: 'user_message' })).id;
  incomplete = (await made('POST', posts, { content: text, content_role: 'agent_response', complete: false })).id;
  const participants = `/api/v1/channels/${channel}/participants`;
  await made('POST', participants, { type: 'external_agent' });
  participant = (await call({ method: 'GET', url: participants })).json.items[0].participant_id;
  user = (await made('POST', '/api/v1/users', { display_name: 'Ann' })).id;
  tokenIssuer = (await made('POST', '/api/v1/token-issuers', newIssuer)).id;
  key = (await made('POST', '/api/v1/keys', { name: 'a key', scopes: ['read'] })).id;
  graph = (await made('POST', '/api/v1/knowledge', { name: 'a' })).id;
  const facts = { edges: [{ source: 'a', target: 'b', fact: 'a is b' }] };
  edge = (await made('POST', `/api/v1/knowledge/${graph}/facts`, facts)).edges[0].uuid;
  document = (await made('POST', '/api/v1/documents', { knowledge_graph: graph, text: 'a' })).id;
  crawl = (await made('POST', '/api/v1/crawls', { url: 'https://example.org/' })).id;
  await made('POST', `/api/v1/crawls/${crawl}/cancel`, {});
  report = (await made('POST', '/api/v1/reports', {})).id;
  media = (await made('POST', '/api/v1/media', {})).id;
  agent = (await made('POST', '/api/v1/agents', { name: 'a' })).id;
  widget = (await made('POST', '/api/v1/agents', { name: 'b', features: { widget_enabled: true } })).id;
  run = await requestedRun();
  external = await requestedRun('external');
  const principal = { type: 'service', id: agent };
  agentKey = (await made('POST', '/api/v1/keys', { name: 'agent', scopes: ['agent'], principal })).key;
  const begun = { method: 'POST', url: '/api/v1/media/uploads', headers: { 'upload-length': '9' } } as const;
  upload = String((await call(begun)).headers['location']);
});
afterAll(() => api?.stop());

/** There is no route that requests a run, and no worker here that would end it. */
async function requestedRun(claimedBy?: 'external'): Promise<string> {
  const { organizationId, features } = api;
  const context = { commandId: newId(), organizationId, actor: { type: 'system', id: 'test' } as const };
  const message = { messageId: newId(), turnId: newId(), spanId: newId(), depth: 0, invocationConfig: null };
  const request = { id: newId(), agentId: agent, channelId: channel, ...message };
  await features.runs.request({ ...context, at: systemClock.now() }, request);
  if (claimedBy !== undefined) {
    const claim = { type: 'RunClaimed.v1', data: { agentName: 'a', model: { kind: claimedBy, name: 'a' } } } as const;
    const claiming = { ...context, commandId: newId(), at: systemClock.now() };
    await features.runs.update(claiming, request.id, () => accept(claim));
  }
  return request.id;
}

interface Change extends Call {
  readonly operation: string;
}

/** Requests that are accepted without a condition, so that only the condition can refuse them. */
function changesOfChannel(): Change[] {
  const at = `/api/v1/channels/${channel}`;
  const one = `/api/v1/interactions/${message}`;
  const begun = `/api/v1/interactions/${incomplete}`;
  const agent = { agent_id: 'agent-1' };
  return [
    { operation: 'postInteraction', method: 'POST', url: `${at}/interactions`, body: { content: text } },
    { operation: 'appendInteractionContent', method: 'POST', url: `${begun}/content`, body: { content: text } },
    { operation: 'completeInteraction', method: 'POST', url: `${begun}/complete`, body: {} },
    { operation: 'failInteraction', method: 'POST', url: `${begun}/fail`, body: { reason: 'x' } },
    { operation: 'addReaction', method: 'PUT', url: `${one}/reactions/%F0%9F%91%8D`, body: agent },
    { operation: 'removeReaction', method: 'DELETE', url: `${one}/reactions/%F0%9F%91%8D?agent_id=agent-1` },
    { operation: 'recordReadReceipt', method: 'POST', url: `${one}/read_receipts`, body: agent },
    { operation: 'dismissMentionInvitePrompt', method: 'POST', url: `${one}/mention_invite_prompt/dismiss` },
    { operation: 'editInteraction', method: 'PATCH', url: one, body: { content: [{ type: 'text', text: 'edited' }] } },
    { operation: 'pinInteraction', method: 'PUT', url: `${one}/pin` },
    { operation: 'unpinInteraction', method: 'DELETE', url: `${one}/pin` },
    { operation: 'deleteInteraction', method: 'DELETE', url: one },
    { operation: 'moveReadMarker', method: 'PUT', url: `${at}/read_marker`, body: { sequence: 1 } },
    { operation: 'updateChannel', method: 'PATCH', url: at, body: { name: 'b' } },
    { operation: 'addChannelParticipant', method: 'POST', url: `${at}/participants`, body: { type: 'external_agent' } },
    { operation: 'removeChannelParticipant', method: 'DELETE', url: `${at}/participants/${participant}` },
    { operation: 'archiveChannel', method: 'POST', url: `${at}/archive` },
  ];
}

function changesOfOthers(): Change[] {
  return [
    { operation: 'updateOrganization', method: 'PATCH', url: `/api/v1/organizations/${api.organizationId}`, body: {} },
    { operation: 'updateUser', method: 'PATCH', url: `/api/v1/users/${user}`, body: {} },
    { operation: 'deactivateUser', method: 'DELETE', url: `/api/v1/users/${user}` },
    { operation: 'updateTokenIssuer', method: 'PATCH', url: `/api/v1/token-issuers/${tokenIssuer}`, body: {} },
    { operation: 'deleteTokenIssuer', method: 'DELETE', url: `/api/v1/token-issuers/${tokenIssuer}` },
    { operation: 'rotateKey', method: 'POST', url: `/api/v1/keys/${key}/rotate`, body: {} },
    { operation: 'revokeKey', method: 'POST', url: `/api/v1/keys/${key}/revoke` },
    { operation: 'cancelCrawl', method: 'POST', url: `/api/v1/crawls/${crawl}/cancel` },
    { operation: 'rescanCrawl', method: 'POST', url: `/api/v1/crawls/${crawl}/rescan` },
    { operation: 'deactivateCrawl', method: 'DELETE', url: `/api/v1/crawls/${crawl}` },
    { operation: 'cancelReport', method: 'POST', url: `/api/v1/reports/${report}/cancel` },
    { operation: 'updateAgent', method: 'PATCH', url: `/api/v1/agents/${agent}`, body: {} },
    { operation: 'deactivateAgent', method: 'POST', url: `/api/v1/agents/${agent}/deactivate` },
    { operation: 'activateAgent', method: 'POST', url: `/api/v1/agents/${agent}/activate` },
    { operation: 'cancelRun', method: 'POST', url: `/api/v1/runs/${run}/cancel` },
    { operation: 'setAgentWebhook', method: 'POST', url: `/api/v1/agents/${agent}/webhook`, body: { url: null } },
    {
      operation: 'answerRun',
      method: 'POST',
      url: `/api/v1/runs/${external}/response`,
      body: { text: 'a' },
      key: agentKey,
    },
    {
      operation: 'failRun',
      method: 'POST',
      url: `/api/v1/runs/${external}/failure`,
      body: { message: 'a' },
      key: agentKey,
    },
    { operation: 'deleteMedia', method: 'DELETE', url: `/api/v1/media/${media}` },
    { operation: 'deleteDocument', method: 'DELETE', url: `/api/v1/documents/${document}` },
    { operation: 'updateKnowledgeGraph', method: 'PATCH', url: `/api/v1/knowledge/${graph}`, body: {} },
    { operation: 'addKnowledgeFacts', method: 'POST', url: `/api/v1/knowledge/${graph}/facts`, body: {} },
    { operation: 'endKnowledgeEdge', method: 'POST', url: `/api/v1/knowledge/${graph}/edges/${edge}/end`, body: {} },
    { operation: 'deleteKnowledgeGraph', method: 'DELETE', url: `/api/v1/knowledge/${graph}` },
  ];
}

function withoutTag(): Change[] {
  const at = `/api/v1/channels/${channel}`;
  const content = { knowledge_graph: graph, text: 'b' };
  const uploads = `/api/v1/documents/uploads?knowledge_graph=${graph}`;
  const delta = { offset: null, text: 'x' };
  const posted = { content: [{ type: 'text', text: 'x' }] };
  const part = { 'upload-offset': '0' };
  return [
    { operation: 'createChannel', method: 'POST', url: '/api/v1/channels', body: { name: 'c' } },
    { operation: 'createOrganization', method: 'POST', url: '/api/v1/organizations', body: { name: 'c' } },
    { operation: 'createUser', method: 'POST', url: '/api/v1/users', body: { display_name: 'Bob' } },
    { operation: 'createKey', method: 'POST', url: '/api/v1/keys', body: { name: 'c', scopes: ['read'] } },
    { operation: 'createTokenIssuer', method: 'POST', url: '/api/v1/token-issuers', body: newIssuer },
    { operation: 'createKnowledgeGraph', method: 'POST', url: '/api/v1/knowledge', body: { name: 'b' } },
    { operation: 'createCrawl', method: 'POST', url: '/api/v1/crawls', body: { url: 'https://example.org/' } },
    { operation: 'createReport', method: 'POST', url: '/api/v1/reports', body: {} },
    { operation: 'createAgent', method: 'POST', url: '/api/v1/agents', body: { name: 'b' } },
    { operation: 'promptAgent', method: 'POST', url: `/api/v1/agents/${agent}/prompt`, body: {} },
    { operation: 'streamPrompt', method: 'POST', url: `/api/v1/agents/${agent}/stream_prompt`, body: {} },
    { operation: 'promptPublicAgent', method: 'POST', url: `/api/v1/agents/${widget}/public_prompt`, body: {} },
    { operation: 'createMedia', method: 'POST', url: '/api/v1/media', body: {} },
    { operation: 'uploadMedia', method: 'POST', url: '/api/v1/media/uploads', body: content },
    { operation: 'continueMediaUpload', method: 'PATCH', url: upload, headers: part, body: content },
    { operation: 'cancelMediaUpload', method: 'DELETE', url: upload },
    { operation: 'createDocument', method: 'POST', url: '/api/v1/documents', body: content },
    { operation: 'uploadDocument', method: 'POST', url: uploads, body: content },
    { operation: 'createWebsocketTicket', method: 'POST', url: `${at}/websocket_ticket` },
    { operation: 'createWebsocketTicketAlias', method: 'POST', url: `${at}/websocket_tickets` },
    {
      operation: 'postRunInteraction',
      method: 'POST',
      url: `/api/v1/runs/${external}/interactions`,
      body: posted,
      key: agentKey,
    },
    { operation: 'writeRunDelta', method: 'POST', url: `/api/v1/runs/${external}/deltas`, body: delta, key: agentKey },
    {
      operation: 'writeInteractionDelta',
      method: 'POST',
      url: `/api/v1/interactions/${incomplete}/deltas`,
      body: delta,
    },
  ];
}

/** Operations, each with the status and the code of its answer under a condition. */
async function answersUnder(ifMatch: string, changes: readonly Change[]): Promise<object[]> {
  const answers: object[] = [];
  for (const { operation, ...one } of changes) {
    const { status, json } = await call({ ...one, headers: { ...one.headers, 'if-match': ifMatch } });
    answers.push({ operation, status, ...(status === 412 && { code: json.code, detail: json.detail }) });
  }
  return answers;
}

const refused = (changes: readonly Change[], detail = 'The entity has changed since the given ETag') =>
  changes.map(({ operation }) => ({ operation, status: 412, code: 'precondition_failed', detail }));

function interactionsOf(id: string): Promise<unknown> {
  const url = `/api/v1/channels/${id}/interactions?include_incomplete=true`;
  // On a busy machine, the first test blocks the process for longer than a store may take to answer.
  return eventually(async () => {
    const { status, json } = await call({ method: 'GET', url });
    expect(status).toBe(200);
    return json;
  });
}

describe('If-Match', () => {
  it('is tested here on every operation of the API that changes something', async () => {
    const document = (await call({ method: 'GET', url: '/openapi.json' })).json;
    const operations = Object.values(asRecord(document.paths)).flatMap((path) =>
      Object.entries(asRecord(path)).flatMap(([method, { operationId }]: [string, Answer['json']]) =>
        ['post', 'put', 'patch', 'delete'].includes(method) ? [String(operationId)] : [],
      ),
    );
    const tried = [...changesOfChannel(), ...changesOfOthers(), ...withoutTag()].map(({ operation }) => operation);
    expect(tried.toSorted()).toEqual(operations.toSorted());
  });

  it('that names another revision is 412, and nothing is written', async () => {
    const before = await interactionsOf(channel);
    const changes = [...changesOfChannel(), ...changesOfOthers()];
    for (const stale of ['"999"', 'W/"0"', 'junk'])
      expect(await answersUnder(stale, changes)).toEqual(refused(changes));
    expect(await interactionsOf(channel)).toEqual(before);
  });

  it('is 412 where there is no ETag, even for any revision', async () => {
    const changes = withoutTag();
    const detail = 'There is no ETag that If-Match could name';
    for (const any of ['"0"', '*']) expect(await answersUnder(any, changes)).toEqual(refused(changes, detail));
  });

  it('on posting is the ETag of the channel, which other posts do not change', async () => {
    const tag = async () => String((await call({ method: 'GET', url: `/api/v1/channels/${channel}` })).headers['etag']);
    const etag = await tag();
    const [post] = changesOfChannel();
    if (post === undefined) throw new Error('there is no such change');
    for (const good of [etag, etag, '*']) {
      expect(await answersUnder(good, [post])).toEqual([{ operation: 'postInteraction', status: 200 }]);
    }
    expect(await tag()).toBe(etag);
    await made('PATCH', `/api/v1/channels/${channel}`, { name: 'renamed' });
    expect(await answersUnder(etag, [post])).toEqual(refused([post]));
  });

  it('of a rotation is the ETag of the key that is rotated, whatever other keys it changes', async () => {
    const etag = async () => String((await call({ method: 'GET', url: `/api/v1/keys/${key}` })).headers['etag']);
    const rotation: Change = { operation: 'rotateKey', method: 'POST', url: `/api/v1/keys/${key}/rotate`, body: {} };
    const first = await etag();
    expect(await answersUnder(first, [rotation])).toEqual([{ operation: 'rotateKey', status: 200 }]);
    expect(await answersUnder(first, [rotation])).toEqual([{ operation: 'rotateKey', status: 409 }]);
    const revocation: Change = { operation: 'revokeKey', method: 'POST', url: `/api/v1/keys/${key}/revoke` };
    expect(await answersUnder(first, [revocation])).toEqual(refused([revocation]));
    expect(await answersUnder(await etag(), [revocation])).toEqual([{ operation: 'revokeKey', status: 200 }]);
  });

  it('is checked after all other reasons for a refusal', async () => {
    const missing = `/api/v1/channels/01900000-0000-7000-8000-000000000000/interactions`;
    const wrong = { content: text, parent_span_id: 'no-such-span' };
    const changes: Change[] = [
      { operation: 'missing', method: 'POST', url: missing, body: { content: text } },
      { operation: 'invalid', method: 'POST', url: `/api/v1/channels/${channel}/interactions`, body: wrong },
    ];
    expect(await answersUnder('"999"', changes)).toEqual([
      { operation: 'missing', status: 404 },
      { operation: 'invalid', status: 422 },
    ]);
  });
});
