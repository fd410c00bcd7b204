import { describe, expect, it } from 'vitest';

import { BadInput } from './import.model.ts';
import { parseSlackChannel, parseSlackMessage, parseSlackUsers, readSlackText } from './slack.format.ts';

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
  ])('of %j are left out, with a reason', (more, reason) => {
    expect(said(more)).toEqual({ kind: 'skipped', reason });
  });

  it.each([
    [null, 'it: '],
    [{ type: 'presence', ts: '1.0' }, 'type: '],
    [{ type: 'message', text: 'x' }, 'ts: '],
    [{ type: 'message', ts: 'soon', text: 'x' }, 'ts: '],
    [{ type: 'message', ts: '1.0', text: 5 }, 'text: '],
    [{ type: 'message', ts: '1.0', text: 'x', files: [{}] }, 'files.0.id: '],
  ])('are refused where they are %j', (input, reason) => {
    const parse = () => parseSlackMessage(input, people, place);
    expect(parse).toThrow(BadInput);
    expect(parse).toThrow(reason);
  });
});

describe("Slack's lists", () => {
  it('make channels with their members', () => {
    const { draft } = parseSlackChannel({ id: 'C1', name: 'general', members: ['U1', 'U2', 'U9'] }, people, place);
    expect(draft.body.participants?.map(({ type }) => type)).toEqual([
      'non_authenticated_user',
      'external_agent',
      'non_authenticated_user',
    ]);
  });

  it('are refused where they are invalid', () => {
    expect(() => parseSlackUsers({})).toThrow(BadInput);
    expect(() => parseSlackChannel({ name: 'general' }, people, place)).toThrow(BadInput);
    expect(() => parseSlackChannel(null, people, place)).toThrow(BadInput);
  });
});
