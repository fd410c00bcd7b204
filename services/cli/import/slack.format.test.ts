import { describe, expect, it } from 'vitest';

import { BadInput } from './import.model.ts';
import { readSlackText } from './slack-content.ts';
import { parseSlackChannel, parseSlackMessage, parseSlackUsers } from './slack.format.ts';

const place = { file: 'general/2026-03-02.json', line: 1 };
const people = parseSlackUsers([
  { id: 'U1', name: 'ada', profile: { display_name: 'Ada', email: 'ada@example.com' } },
  { id: 'U2', name: 'robo', is_bot: true },
  { id: 'U3', name: 'cleo' },
  { nobody: true },
]);
const said = (more: object) =>
  parseSlackMessage({ type: 'message', ts: '1772445600.000100', text: 'hi', ...more }, people, place);

describe("Slack's text", () => {
  it('name mentioned users, with the offset in the text that is kept', () => {
    const { text, mentions } = readSlackText('a &lt;b&gt; <@U1> and <@U2|x> &amp; <@U9>', people);
    expect(text).toBe('a <b> @Ada and @robo & @U9');
    expect(mentions.map(({ type, id, offset, length }) => [type, id, text.slice(offset, offset + length)])).toEqual([
      ['user', 'U1', '@Ada'],
      ['agent', 'U2', '@robo'],
      ['user', 'U9', '@U9'],
    ]);
  });

  it.each([
    ['<https://example.com/?a=1&amp;b=2>', 'https://example.com/?a=1&b=2'],
    ['<https://example.com|here>', 'here (https://example.com)'],
    ['<#C1|general> <#C2>', '#general #C2'],
    ['<!here> <!subteam^S1|@team>', '@here @team'],
    ['a < b', 'a < b'],
    ['&amp;lt;', '&lt;'],
  ])('writes %s as %s', (source, text) => {
    expect(readSlackText(source, people)).toEqual({ text, mentions: [] });
  });
});

describe("Slack's messages", () => {
  it.each([
    [{ user: 'U1' }, { type: 'maybe_user', email: 'ada@example.com' }, 'user_message'],
    [{ user: 'U3' }, { type: 'non_authenticated_user', user_metadata: { name: 'cleo' } }, 'user_message'],
    [{ user: 'U2' }, { type: 'external_agent', agent_metadata: { name: 'robo', slack_id: 'U2' } }, 'agent_response'],
    [
      { subtype: 'bot_message', bot_id: 'B1', username: 'Deploys' },
      { type: 'external_agent', agent_metadata: { name: 'Deploys', slack_id: 'B1' } },
      'agent_response',
    ],
    [{ user: 'U1', subtype: 'channel_join' }, { type: 'system' }, 'channel_notification'],
  ])('of %j are sent by %j', (more, participant, role) => {
    expect(said(more)).toMatchObject({ kind: 'message', message: { body: { participant, content_role: role } } });
  });

  it('are below the message that starts their thread', () => {
    expect(said({ thread_ts: '1772445000.000001' })).toMatchObject({
      message: { key: 'ts 1772445600.000100', parentKey: 'ts 1772445000.000001' },
    });
    expect(said({ thread_ts: '1772445600.000100' })).toMatchObject({ message: { parentKey: null } });
  });

  it('record when they were sent and edited, and their reactions', () => {
    const more = { edited: { ts: '1772445660.000000' }, reactions: [{ name: 'tada', count: 2 }] };
    expect(said(more)).toMatchObject({
      message: {
        body: {
          metadata: {
            source_time: '2026-03-02T10:00:00.000Z',
            source_edited: '2026-03-02T10:01:00.000Z',
            slack_reactions: [{ name: 'tada', count: 2 }],
          },
        },
      },
    });
  });

  it('have files as media where all required fields are known, else as text', () => {
    const image = {
      id: 'F1',
      name: 'a.png',
      mimetype: 'image/png',
      original_w: 4,
      original_h: 3,
      permalink: 'https://example.com/F1',
    };
    const parsed = said({ text: '', files: [image, { id: 'F2', name: 'b.pdf', mimetype: 'application/pdf' }] });
    expect(parsed).toMatchObject({
      message: {
        body: {
          content: [
            { type: 'media', meta_data: { media_id: 'F1', width: 4, height: 3, description: 'a.png' } },
            { type: 'text', text: '[file] b.pdf' },
          ],
        },
      },
    });
  });

  const contentOf = (more: object) => {
    const parsed = said({ text: '', ...more });
    return parsed.kind === 'message' ? parsed.message.body.content.map((item) => 'text' in item && item.text) : parsed;
  };
  const rich = (...elements: object[]) => ({
    type: 'rich_text',
    elements: [{ type: 'rich_text_section', elements }],
  });

  it.each([
    ['fallback', [{ fallback: 'Build failed' }], 'Build failed'],
    [
      'title, text and fields',
      [
        {
          fallback: 'x',
          pretext: 'New ticket',
          title: 'T-1',
          title_link: 'https://example.com/1',
          text: 'Printer &lt;b&gt; of <@U1>',
          fields: [{ title: 'Priority', value: 'high' }],
          footer: 'Jira',
        },
      ],
      'New ticket\nT-1 (https://example.com/1)\nPrinter <b> of @Ada\nPriority: high\nJira',
    ],
    ['picture', [{ image_url: 'https://example.com/a.gif', fallback: 'a gif' }], 'https://example.com/a.gif'],
    [
      'block',
      [{ blocks: [{ type: 'section', text: { type: 'mrkdwn', text: '*Deployed* &amp; up' } }] }],
      '*Deployed* & up',
    ],
    [
      'forwarded message',
      [{ is_share: true, message_blocks: [{ message: { blocks: [rich({ type: 'text', text: 'as said' })] } }] }],
      'as said',
    ],
    [
      'file',
      [{ files: [{ id: 'F1', name: 'a.pdf', permalink: 'https://example.com/F1' }] }],
      '[file] a.pdf https://example.com/F1',
    ],
    ['form of its own', [{ actions: [{ name: 'a<b>' }] }], '{"actions":[{"name":"a<b>"}]}'],
  ])('say what is in the %s of an attachment', (_what, attachments, text) => {
    expect(contentOf({ attachments })).toEqual([text]);
  });

  it.each([
    [
      'section',
      { type: 'section', text: { type: 'plain_text', text: 'a <b>' }, fields: [{ type: 'mrkdwn', text: 'c' }] },
      'a <b>\nc',
    ],
    ['header', { type: 'header', text: { type: 'plain_text', text: 'Alert' } }, 'Alert'],
    [
      'context',
      {
        type: 'context',
        elements: [
          { type: 'mrkdwn', text: 'by <@U1>' },
          { type: 'image', alt_text: 'me', image_url: 'https://e.org/a' },
        ],
      },
      'by @Ada [image] me https://e.org/a',
    ],
    [
      'actions',
      {
        type: 'actions',
        elements: [{ type: 'button', text: { type: 'plain_text', text: 'Open' }, url: 'https://e.org/' }],
      },
      'Open (https://e.org/)',
    ],
    [
      'rich text',
      rich(
        { type: 'text', text: 'See ' },
        { type: 'link', url: 'https://e.org/?a=1&b=2', text: 'this' },
        { type: 'text', text: ' ' },
        { type: 'user', user_id: 'U1' },
        { type: 'emoji', name: 'tada' },
      ),
      'See this (https://e.org/?a=1&b=2) @Ada:tada:',
    ],
    [
      'list',
      {
        type: 'rich_text',
        elements: [
          {
            type: 'rich_text_list',
            style: 'ordered',
            elements: [
              { type: 'rich_text_section', elements: [{ type: 'text', text: 'one' }] },
              { type: 'rich_text_section', elements: [{ type: 'text', text: 'two' }] },
            ],
          },
        ],
      },
      '1. one\n2. two',
    ],
    ['type that is not known', { type: 'plan', tasks: ['<a>'] }, '{"type":"plan","tasks":["<a>"]}'],
  ])('say what is in a block: %s', (_what, block, text) => {
    expect(contentOf({ blocks: [block] })).toEqual([text]);
  });

  it('say what is in a table', () => {
    const cell = (text: string) => rich({ type: 'text', text });
    const rows = [
      [cell('Name'), cell('Age')],
      [{ type: 'raw_text', text: 'Ada' }, cell('36')],
    ];
    expect(contentOf({ blocks: [{ type: 'table', rows }] })).toEqual(['Name | Age\nAda | 36']);
  });

  it('say nested lists once, which Slack counts with letters', () => {
    const item = (text: string) => ({ type: 'rich_text_section', elements: [{ type: 'text', text }] });
    const list = (indent: number, ...texts: string[]) => ({
      type: 'rich_text_list',
      style: 'ordered',
      indent,
      elements: texts.map(item),
    });
    const block = { type: 'rich_text', elements: [item('Steps:\n'), list(0, 'one'), list(1, 'one of one', 'again')] };
    const text = 'Steps:\n1. one\n    a. one of one\n    b. again';
    expect(contentOf({ text, blocks: [block] })).toEqual([text]);
    const repeated = { type: 'rich_text', elements: [list(0, 'same', 'same')] };
    expect(contentOf({ blocks: [repeated] })).toEqual(['1. same\n2. same']);
  });

  it('say once what their text and their blocks both say, and all that only one of them says', () => {
    const block = rich(
      { type: 'text', text: 'Hello ' },
      { type: 'user', user_id: 'U1' },
      { type: 'text', text: ', see ' },
      { type: 'link', url: 'https://e.org/', text: 'this' },
      { type: 'text', text: ' & that', style: { bold: true } },
    );
    const text = 'Hello <@U1|ada>, see <https://e.org/|this> *&amp; that*';
    expect(contentOf({ text, blocks: [block] })).toEqual(['Hello @Ada, see this (https://e.org/) *& that*']);
    const header = { type: 'header', text: { type: 'plain_text', text: 'note' } };
    expect(contentOf({ text: 'notes', blocks: [header], attachments: [{ text: 'more' }] })).toEqual([
      'notes\nnote\nmore',
    ]);
  });

  it('name people of other workspaces, and writers of old comments on files', () => {
    const profile = { real_name: 'Grace Hopper', display_name: 'grace' };
    expect(said({ user: 'W9', user_profile: profile })).toMatchObject({
      message: { body: { participant: { user_metadata: { name: 'grace' } }, metadata: { slack_user: 'W9' } } },
    });
    expect(said({ subtype: 'file_comment', comment: { user: 'U3', comment: 'hi' } })).toMatchObject({
      message: { body: { participant: { user_metadata: { name: 'cleo' } } } },
    });
  });

  it('keep their other members, and name those without room', () => {
    const more = { client_msg_id: 'm1', pinned_to: ['C1'], reply_count: 3, huge: 'x'.repeat(200_000) };
    expect(said(more)).toMatchObject({
      leftOut: ['huge'],
      message: { body: { metadata: { source_fields: { client_msg_id: 'm1', pinned_to: ['C1'] } } } },
    });
  });

  it('keep the one file of messages before 2018, and files of another form', () => {
    expect(contentOf({ subtype: 'file_share', file: { id: 'F1', name: 'b.pdf' } })).toEqual(['[file] b.pdf']);
    expect(contentOf({ files: [{ mode: 'hidden_by_limit' }] })).toEqual(['[file] {"mode":"hidden_by_limit"}']);
  });

  it('name a file whose address is no web address, or too long for one', () => {
    for (const permalink of ['slack://file?id=F1', `https://example.com/${'x'.repeat(1_100)}`]) {
      const image = { id: 'F1', name: 'a.png', mimetype: 'image/png', original_w: 4, original_h: 3, permalink };
      expect(said({ files: [image] })).toMatchObject({
        message: { body: { content: [{ type: 'text' }, { type: 'media', media_url: null }] } },
      });
    }
  });

  it('of an unknown kind are described, whatever the name of the kind', () => {
    for (const subtype of ['constructor', 'toString', 'brand_new']) {
      expect(said({ subtype })).toMatchObject({ message: { body: { content_role: 'channel_notification' } } });
    }
  });

  it.each([
    [{ subtype: 'tombstone' }, 'a deleted message'],
    [{ subtype: 'message_changed' }, 'an edit; the message itself has the last text'],
    [{ text: '' }, 'a message without text or files'],
    [{ text: '', subtype: 'huddle_thread' }, 'a message without text or files (huddle_thread)'],
  ])('of %j are left out, with a reason', (more, reason) => {
    expect(said(more)).toEqual({ kind: 'skipped', reason });
  });

  it.each([
    [null, 'it: '],
    [{ type: 'presence', ts: '1.0' }, 'type: '],
    [{ type: 'message', text: 'x' }, 'ts: '],
    [{ type: 'message', ts: 'soon', text: 'x' }, 'ts: '],
    [{ type: 'message', ts: '1.0', text: 5 }, 'text: '],
  ])('are refused where they are %j', (input, reason) => {
    const parse = () => parseSlackMessage(input, people, place);
    expect(parse).toThrow(BadInput);
    expect(parse).toThrow(reason);
  });
});

it('a message names the mentions that it has no room for', () => {
  const text = Array.from({ length: 530 }, (_, n) => `<@W${n}>`).join(' ');
  const parsed = said({ text });
  if (parsed.kind !== 'message') throw new Error(parsed.reason);
  expect(parsed.message.body.invocation_config?.mentions).toHaveLength(500);
  expect(parsed.lost).toMatchObject({ what: 'mentions', count: 30 });
  expect(parsed.lost?.reason).toMatch(
    /^30 of 530 mentions are left out, because a message has at most 500: W500, W501, .*, W519 and 10 more$/,
  );
});

describe("Slack's lists", () => {
  it('make channels with their members', () => {
    const { draft } = parseSlackChannel(
      { id: 'C1', name: 'general', members: ['U1', 'U2', 'U9'] },
      'channel',
      people,
      place,
    );
    expect(draft.body.participants?.map(({ type }) => type)).toEqual([
      'non_authenticated_user',
      'external_agent',
      'non_authenticated_user',
    ]);
  });

  it('name the members that a channel has no room for', () => {
    const members = Array.from({ length: 1_003 }, (_, n) => `U${n}`);
    const { draft, lost } = parseSlackChannel({ id: 'C1', name: 'general', members }, 'channel', people, place);
    expect(draft.body.participants).toHaveLength(1_000);
    expect(lost).toEqual({
      what: 'participants',
      count: 3,
      reason: '3 of 1003 participants are left out, because a channel has at most 1000: U1000, U1001, U1002',
    });
  });

  it('name direct messages by their members, and say of what kind they are', () => {
    const { draft, folders } = parseSlackChannel({ id: 'D1', members: ['U1', 'U3'] }, 'direct_message', people, place);
    expect(draft.body).toMatchObject({
      name: 'Ada, cleo',
      meta_data: { source_id: 'D1', source_kind: 'direct_message' },
    });
    expect(folders).toEqual(['D1']);
  });

  it('are refused where they are invalid', () => {
    expect(() => parseSlackUsers({})).toThrow(BadInput);
    expect(() => parseSlackChannel({ name: 'general' }, 'channel', people, place)).toThrow(BadInput);
    expect(() => parseSlackChannel(null, 'channel', people, place)).toThrow(BadInput);
  });
});
