/** One interaction of each shape of the contract (sections 2.13 to 2.15), with every field, as a caller sends it. */
export const PARTICIPANTS: readonly Record<string, unknown>[] = [
  { type: 'non_authenticated_user', user_metadata: { browser: 'lynx' } },
  { type: 'non_authenticated_user', user_metadata: null },
  { type: 'maybe_user', email: 'ada@example.org' },
  {
    type: 'agent',
    agent_id: 'agent-1',
    agent_metadata: { team: 'blue' },
    forwarded_for_agent: {
      agent_address: 'a@b',
      agent_name: 'A',
      image_url: 'https://example.org/a.png',
      agent_avatar_href: null,
    },
  },
  { type: 'external_agent', agent_metadata: null },
  { type: 'system' },
];

const funds = { amount: '1.50', currency: 'EUR', payment_method: 'card' };

export const CONTENT: readonly Record<string, unknown>[] = [
  { type: 'text', text: 'Grüße 🎈 \u0000 "quoted"' },
  { type: 'audio_tag', tag: 'laughs' },
  {
    type: 'media',
    meta_data: {
      media_id: 'm-1',
      mime_type: 'image/png',
      width: 2,
      height: 3,
      description: 'cat.png',
      source_url: 'https://example.org/cat.png',
      name: 'cat',
      resource_type: 'image',
      format: 'png',
      preview: null,
    },
    media_url: 'https://example.org/cat.png',
  },
  { type: 'custom_content', name: 'card', version: '1', data: { deep: [{ n: null }, 1.5] }, alt_text: 'a card' },
  { type: 'tool_call', tool_name: 't', tool_args: { q: 'x' }, tool_call_id: 'c-1', display_text: 'Looking…' },
  {
    type: 'tool_call_result',
    tool_name: 't',
    tool_result: { ok: true },
    tool_call_id: 'c-1',
    status: 'rate_limited',
    display_text: null,
  },
  {
    type: 'request_payment',
    accepted_funds: [funds],
    recipient: 'r',
    deadline_seconds: 60,
    reference: 'ref',
    description: 'd',
    metadata: { a: 1 },
  },
  {
    type: 'commit_payment',
    funds,
    recipient: 'r',
    transaction_id: 'tx',
    reference: null,
    description: null,
    metadata: null,
  },
  { type: 'reject_payment', reason: 'no' },
  { type: 'complete_payment', transaction_id: 'tx' },
  { type: 'cancel_payment', transaction_id: 'tx', reason: 'late' },
];

/** Required fields of each content type. */
export const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  text: ['text'],
  audio_tag: ['tag'],
  media: ['meta_data'],
  custom_content: ['name', 'version', 'data'],
  tool_call: ['tool_name', 'tool_args'],
  tool_call_result: ['tool_name', 'tool_result'],
  request_payment: ['accepted_funds', 'recipient', 'deadline_seconds'],
  commit_payment: ['funds', 'recipient', 'transaction_id'],
  reject_payment: [],
  complete_payment: [],
  cancel_payment: [],
};

export const ROLES = [
  'user_message',
  'agent_response',
  'agent_reasoning',
  'tool_call',
  'tool_call_result',
  'internal_error',
  'channel_notification',
] as const;

const mention = { type: 'agent', id: 'a', identifier: 'a@b', identifier_type: 'address', offset: 0, length: 3 };

export const INVOCATION_CONFIG = {
  planner_mode: true,
  enable_scheduled_prompt_tools: null,
  thinking: false,
  model_name: 'm',
  thinking_budget: 5,
  reasoning_effort: 'high',
  collaboration_participant_ids: ['p'],
  slash_skills: ['s'],
  mentions: [mention],
  withheld_mentions: [{ ...mention, type: 'user', identifier_type: 'uuid', offset: null, length: null }],
  private_mention_requests: [
    {
      twin_id: 't',
      outcome: 'private_friend_request',
      friendship_id: 'f',
      channel_id: 'c',
      owner_display_name: null,
    },
  ],
};
