/** Channels of every kind, with interactions of every role, and what people do with them. */
import { asRecord } from '#test/support/log-reader.ts';
import { type Caller, itemsOf } from './caller.ts';

export interface People {
  readonly ada: string;
  readonly grace: string;
  readonly userCaller: Caller;
  readonly serviceCaller: Caller;
}

const text = (words: string) => ({ type: 'text', text: words });

export async function fillChannels(
  api: Caller,
  people: People,
  agent: string,
  round: string,
): Promise<readonly string[]> {
  const channel = await fillChannel(api, people, agent, round);
  await fillInteractions(api, people, agent, channel);
  await fillOpenInteractions(api, agent, channel);
  const thread = await fillThread(api, channel);
  const archived = await api.create('/api/v1/channels', { name: 'Archived', participants: [member(people.ada)] });
  await api.post(interactions(archived), { content: [text('Before the end')], participant: member(people.ada) });
  await api.post(interactions(archived), { content: [text('Half')], complete: false });
  await api.post(`/api/v1/channels/${archived}/archive`);
  return [channel, thread, archived];
}

const member = (id: string) => ({ type: 'authenticated_user', user_id: id });
const interactions = (channel: string): string => `/api/v1/channels/${channel}/interactions`;

async function fillChannel(api: Caller, { ada, grace }: People, agent: string, round: string): Promise<string> {
  const channel = await api.create('/api/v1/channels', {
    name: `General ${round}`,
    meta_data: { room: 17, nested: { list: [1, 'two', null] } },
    source: 'app_main',
    channel_type: 'collaboration',
    participants: [
      member(ada),
      { type: 'non_authenticated_user', user_metadata: { name: 'Guest' } },
      { type: 'external_agent', agent_metadata: { name: 'Robot' } },
    ],
  });
  const path = `/api/v1/channels/${channel}`;
  await api.patch(path, { name: `General, too ${round}` });
  await api.patch(path, { meta_data: { room: 18 } });
  await api.patch(path, { agent_invocation_behavior: 'at_mentions_only', run_concurrency: 'queue' });
  await api.patch(path, { name: `Everything ${round}`, meta_data: null, run_concurrency: null });
  await api.post(`${path}/participants`, member(grace));
  await api.post(`${path}/participants`, { type: 'agent', id: agent });
  for (const { participant_id, participant } of itemsOf(await api.get(`${path}/participants`))) {
    if (asRecord(participant)['type'] !== 'non_authenticated_user') continue;
    await api.delete(`${path}/participants/${String(participant_id)}`);
  }
  for (const type of ['messenger_a', 'sms']) await api.create('/api/v1/channels', { name: `By ${type}`, type });
  return channel;
}

async function fillInteractions(api: Caller, people: People, agent: string, channel: string): Promise<void> {
  const { grace, userCaller } = people;
  const post = (body: Record<string, unknown>, caller = api): Promise<string> =>
    caller.create(interactions(channel), body);
  const asAgent = { participant: { type: 'agent', agent_id: agent } };
  const message = await post(
    { content: [text('Hello, everybody \u{1F44B}\u2028!')], metadata: { from: 'a test' } },
    userCaller,
  );
  await post({ content: [text('As Grace')], participant: member(grace), invocation_config: CONFIG(agent) });
  const { span_id } = await api.get(`/api/v1/interactions/${message}`);
  const under = { parent_span_id: span_id, ...asAgent };
  await post({ ...under, content_role: 'agent_reasoning', content: [text('I think.')] });
  const call = { type: 'tool_call', tool_name: 'weather', tool_args: { town: 'Kiel' }, tool_call_id: 'call-1' };
  await post({
    ...under,
    content_role: 'tool_call',
    content: [{ ...call, display_text: 'Asking …' }],
    span_id: 'call-span',
  });
  const update = { type: 'tool_call_update', tool_name: 'weather', tool_call_id: 'call-1', sequence: 1 };
  await post({ ...under, content_role: 'tool_call_update', content: [{ ...update, update: { text: 'half' } }] });
  const result = { type: 'tool_call_result', tool_name: 'weather', tool_result: { sun: true }, tool_call_id: 'call-1' };
  await post({
    ...asAgent,
    parent_span_id: 'call-span',
    content_role: 'tool_call_result',
    content: [{ ...result, status: 'success' }],
  });
  await post({ ...under, content_role: 'agent_response', content: EVERY_CONTENT });
  await post({ ...under, content_role: 'internal_error', content: [text('Something failed')] });
  await post({ content_role: 'channel_notification', participant: { type: 'system' }, content: [text('A notice')] });
  await post({ content: [text('From a letter')], participant: { type: 'maybe_user', email: 'someone@example.com' } });
  await post({
    content: [text('A guest')],
    participant: { type: 'non_authenticated_user', user_metadata: { name: 'Guest' } },
  });
  await post({
    content: [text('A robot')],
    participant: { type: 'external_agent', agent_metadata: { name: 'R' } },
    content_role: 'agent_response',
  });
  for (let index = 0; index < 10; index += 1) {
    await api.post(
      interactions(channel),
      { content: [text(`Number ${index}`)] },
      { 'idempotency-key': `n-${channel}-${index}` },
    );
  }
  const at = `/api/v1/interactions/${message}`;
  await userCaller.put(`${at}/reactions/${encodeURIComponent('\u{1F44D}')}`);
  await userCaller.put(`${at}/reactions/${encodeURIComponent('\u2764\uFE0F')}`);
  await api.put(`${at}/reactions/${encodeURIComponent('\u{1F44D}')}`, { agent_id: agent });
  await userCaller.delete(`${at}/reactions/${encodeURIComponent('\u2764\uFE0F')}`);
  await api.post(`${at}/read_receipts`, { agent_id: agent });
  await userCaller.post(`${at}/mention_invite_prompt/dismiss`);
}

async function fillOpenInteractions(api: Caller, agent: string, channel: string): Promise<void> {
  const asAgent = { participant: { type: 'agent', agent_id: agent }, content_role: 'agent_response', complete: false };
  const open = (): Promise<string> => api.create(interactions(channel), { ...asAgent, content: [text('It begins')] });
  const [completed, replaced, failed, left] = [await open(), await open(), await open(), await open()];
  await api.post(`/api/v1/interactions/${completed}/content`, { content: [text(' and continues')] });
  await api.post(`/api/v1/interactions/${completed}/deltas`, { text: ' while it is written' });
  await api.post(`/api/v1/interactions/${completed}/complete`);
  await api.post(`/api/v1/interactions/${replaced}/complete`, { content: [text('Something else')] });
  await api.post(`/api/v1/interactions/${failed}/fail`, { reason: 'it broke' });
  await api.post(`/api/v1/interactions/${left}/content`, { content: [text(' and stays open')] });
}

async function fillThread(api: Caller, channel: string): Promise<string> {
  const origin = await api.create(interactions(channel), { content: [text('Above a thread')] });
  const thread = await api.create('/api/v1/channels', {
    name: 'A thread',
    channel_type: 'thread',
    parent_channel_id: channel,
    origin_message_id: origin,
  });
  await api.post(interactions(thread), { content: [text('In a thread')] });
  return thread;
}

const CONFIG = (agent: string) => ({
  thinking: true,
  thinking_budget: 1_000,
  reasoning_effort: 'low',
  model_name: 'small',
  slash_skills: ['one'],
  withheld_mentions: [{ type: 'agent', id: agent, identifier: agent, identifier_type: 'uuid', offset: 0, length: 2 }],
});

const FUNDS = { amount: '12.50', currency: 'EUR' };
const EVERY_CONTENT = [
  text('**Bold**'),
  { type: 'audio_tag', tag: 'laugh' },
  {
    type: 'media',
    media_url: 'https://example.com/a.png',
    meta_data: { media_id: 'm', mime_type: 'image/png', width: 1, height: 2, description: 'a.png' },
  },
  { type: 'custom_content', name: 'card', version: '1', data: { a: [1, 2.5, { b: null }] }, alt_text: 'A card' },
  {
    type: 'request_payment',
    accepted_funds: [FUNDS],
    recipient: 'shop',
    deadline_seconds: 60,
    reference: 'r',
    metadata: { x: 1 },
  },
  { type: 'commit_payment', funds: FUNDS, recipient: 'shop', transaction_id: 't-1' },
  { type: 'reject_payment', reason: 'too much' },
  { type: 'complete_payment', transaction_id: 't-1' },
  { type: 'cancel_payment', transaction_id: 't-1', reason: 'late' },
];
