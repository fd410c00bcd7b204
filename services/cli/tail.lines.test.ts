import { describe, expect, it } from 'vitest';

import type { ChannelEvent, Interaction } from '#libs/client/src/index.ts';

import { coloured, plain, TailLines } from './tail.lines.ts';

const at = '2026-01-01T12:30:05.000Z';
const local = new Date(at).toTimeString().slice(0, 8);

function interaction(parts: Partial<Interaction>): Interaction {
  return {
    id: 'i',
    created_at: at,
    channel_id: 'c',
    participant: { type: 'authenticated_user', user_id: 'u' },
    content: [{ type: 'text', text: 'Hello' }],
    content_role: 'user_message',
    complete: true,
    metadata: null,
    invocation_config: null,
    interaction_id: null,
    sequence: 7,
    span_id: null,
    parent_span_id: null,
    organization_id: null,
    organization_application: null,
    reactions: null,
    mention_invite_prompt_dismissed: false,
    agent_read_receipts: null,
    ...parts,
  };
}
const posted = (parts: Partial<Interaction>): ChannelEvent => ({
  seq: 7,
  type: 'interaction.posted',
  at,
  data: interaction(parts),
});

describe('lines of parley tail', () => {
  const lines = new TailLines(plain);
  lines.learn([
    { type: 'authenticated_user', user_id: 'u', id: 'p', display_name: 'Ada', image_url: null, is_owner: true },
  ]);

  it('show time, sequence, sender and text', () => {
    expect(lines.event(posted({}))).toBe(`${local}       7  Ada               Hello`);
  });

  it('indent further lines of a text', () => {
    const [first = '', second] = lines.event(posted({ content: [{ type: 'text', text: 'One\nTwo' }] })).split('\n');
    expect(first.endsWith('One')).toBe(true);
    expect(second).toBe(`${' '.repeat(first.indexOf('One'))}Two`);
  });

  it('mark replies, and types other than messages', () => {
    const content = [
      {
        type: 'tool_call' as const,
        tool_name: 'search',
        tool_args: { q: 'x' },
        tool_call_id: null,
        display_text: null,
      },
    ];
    expect(lines.event(posted({ parent_span_id: 's', content_role: 'tool_call', content }))).toContain(
      '↳ [tool_call] search {"q":"x"}',
    );
  });

  it('escape control characters, so that others cannot drive the terminal', () => {
    const text = '\u{1b}[2Jgone\u{9b}31m\r';
    expect(lines.event(posted({ content: [{ type: 'text', text }] }))).not.toMatch(/\p{Cc}/u);
    const nasty = { type: 'external_agent' as const, agent_metadata: { name: '\u{1b}]0;x\u{7}Bot' } };
    expect(lines.event(posted({ participant: nasty }))).not.toMatch(/\p{Cc}/u);
  });

  it('name each type of event, also an unknown one', () => {
    const later = JSON.parse(`{"seq":9,"type":"weather.changed","at":"${at}","data":{"rain":true}}`) as ChannelEvent;
    expect(lines.event(later)).toContain('(weather.changed)');
    expect(lines.event({ seq: 10, type: 'interaction.posted', at, data: null })).toContain('(interaction.posted)');
  });

  it('name who did it: the key too, and in whose name', () => {
    const keyed = { type: 'service', id: 'backend', key_id: 'k1', on_behalf_of: null } as const;
    const data = {
      participant_id: 'p',
      type: 'authenticated_user' as const,
      user_id: 'u',
      id: 'p',
      display_name: 'Ada',
      image_url: null,
      is_owner: true,
    };
    const left = { seq: 8, type: 'participant.left', at, data } as const;
    expect(lines.event({ ...left, actor: keyed })).toContain('Ada               removed by service backend (key k1)');
    const itself = { type: 'user', id: 'u', key_id: 'k2', on_behalf_of: null } as const;
    expect(lines.event({ ...left, actor: itself })).toMatch(/Ada +left$/);
    const named = { ...posted({}), actor: { ...keyed, on_behalf_of: { type: 'user', id: 'u' } } } as const;
    expect(lines.event(named)).toContain('Ada               Hello [by service backend (key k1)]');
    const file = { channel_id: 'c', media_id: 'm', name: 'bill.pdf', sha256: null, bytes: 0, interaction_id: null };
    expect(lines.event({ seq: 9, type: 'file.deleted', at, actor: itself, data: file })).toContain(
      'deleted by Ada (key k2): bill.pdf',
    );
  });

  it('have colours only where they are wanted', () => {
    expect(lines.event(posted({}))).not.toContain('\u{1b}');
    expect(new TailLines(coloured).event(posted({}))).toContain('\u{1b}[2m');
  });

  it('show the end of a draft, and its author', () => {
    const participant = { type: 'external_agent' as const, agent_metadata: { name: 'Bot' } };
    lines.event(posted({ id: 'w', complete: false, content: [], participant }));
    expect(lines.draft('w', 'a short one', 80)).toBe('Bot ✎ a short one');
    expect(lines.draft('w', 'x'.repeat(100) + '\nthe end', 20)).toBe('Bot ✎ …xxxx the end');
  });
});
