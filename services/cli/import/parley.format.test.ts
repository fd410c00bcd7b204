import { describe, expect, it } from 'vitest';

import { BadInput } from './import.model.ts';
import { parseParley } from './parley.format.ts';

const place = { file: 'talks.jsonl', line: 7 };

describe('exported lines', () => {
  const interaction = {
    channel_id: 'c',
    span_id: 's',
    parent_span_id: 'p',
    interaction_id: 't',
    created_at: '2026-03-02T08:00:00.000Z',
    content_role: 'user_message',
    content: [{ type: 'text', text: 'hi' }],
    participant: { type: 'system' },
    complete: true,
    metadata: null,
  };
  it('keep spans and turns, and record the original time', () => {
    expect(parseParley(JSON.stringify(interaction), place)).toMatchObject({
      kind: 'interaction',
      message: {
        key: 's',
        parentKey: 'p',
        body: { interaction_id: 't', metadata: { source_time: '2026-03-02T08:00:00.000Z' } },
      },
    });
  });

  it('keep metadata that has no room for the time of the source', () => {
    const metadata = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`name-${n}`, n]));
    const interaction = { channel_id: 'c', span_id: 's', content_role: 'user_message', content: [], metadata };
    const parsed = parseParley(JSON.stringify({ ...interaction, created_at: '2026-03-02T10:00:00.000Z' }), place);
    expect(parsed).toMatchObject({ message: { body: { metadata } } });
  });

  it('keep the time that an earlier import has recorded', () => {
    const line = JSON.stringify({ ...interaction, metadata: { source_time: '2020-01-01T00:00:00.000Z' } });
    expect(parseParley(line, place)).toMatchObject({
      message: { body: { metadata: { source_time: '2020-01-01T00:00:00.000Z' } } },
    });
  });

  it.each([
    ['something else', '{"id": "x"}', 'neither a channel'],
    ['an interaction without a span', JSON.stringify({ ...interaction, span_id: null }), 'no channel_id or span_id'],
    ['content that the API refuses', JSON.stringify({ ...interaction, content: [{ type: 'smell' }] }), 'content.0'],
    ['what is never kept', JSON.stringify({ ...interaction, content_role: 'tool_call_update' }), 'tool-call updates'],
    ['a channel without a name', '{"id": "x", "channel_type": "chat"}', 'channel: name'],
    [
      'a number that would become another one',
      JSON.stringify({ ...interaction, metadata: { a: [0] } }).replace('[0]', '[0,9007199254740993]'),
      'metadata.a.1: Value error, the number cannot be represented exactly',
    ],
    [
      'a zero that would lose its sign',
      '{"id": "x", "channel_type": "chat", "meta_data": -0}',
      'meta_data: Value error',
    ],
  ])('refuse %s', (_, line, reason) => {
    const parse = () => parseParley(line, place);
    expect(parse).toThrow(BadInput);
    expect(parse).toThrow(reason);
  });
});
