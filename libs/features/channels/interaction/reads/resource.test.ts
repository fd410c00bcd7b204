import { describe, expect, it } from 'vitest';

import type { ChannelSequence } from '#libs/kernel/event.ts';

import { annotated, createdMsOf, interactionJson, isComplete, spanIdOf } from './resource.ts';

const TRAP = {
  created_at: '2020-01-01T00:00:00.000Z',
  complete: false,
  span_id: 'trap',
  parent_span_id: 'trap',
  reactions: null,
};

function stored({ complete, spanId }: { complete: boolean; spanId: string }): Buffer {
  const json = interactionJson(
    {
      participant: { type: 'system' },
      content: [{ type: 'custom_content', data: TRAP, text: JSON.stringify(TRAP) }],
      contentRole: 'user_message',
      complete,
      metadata: { ...TRAP, text: JSON.stringify(TRAP) },
      invocationConfig: TRAP,
      turnId: 'turn-1',
      spanId,
      parentSpanId: JSON.stringify(TRAP),
      depth: 1,
      organizationApplication: JSON.stringify({ ...TRAP, complete: true }),
      sequence: 2 as ChannelSequence,
      createdAt: '2026-01-31T12:00:00.000Z',
      failure: null,
    },
    { organizationId: 'org-1', channelId: '0198c1f0-0000-7000-8000-000000000001' },
  );
  return Buffer.from(json);
}

const added = {
  reactions: [{ emoji: '👍', reactor_names: [JSON.stringify(TRAP), JSON.stringify({ complete: true })] }],
  mention_invite_prompt_dismissed: true,
  agent_read_receipts: [{ id: 'receipt-1' }],
};

describe('members read from the bytes of an interaction', () => {
  it.each([true, false])('include whether it is complete (%s), whatever its content is', (complete) => {
    const document = stored({ complete, spanId: 'span-1' });
    expect(isComplete(document)).toBe(complete);
    expect(isComplete(annotated(document, added))).toBe(complete);
  });

  it.each(['span-1', 'a "quoted" ü \\ 🎈', ',"parent_span_id":'])('include its span: %s', (spanId) => {
    const document = stored({ complete: true, spanId });
    expect(spanIdOf(document)).toBe(spanId);
    expect(spanIdOf(annotated(document, added))).toBe(spanId);
  });

  it('include the time of its creation, whatever its content is', () => {
    expect(createdMsOf(stored({ complete: true, spanId: 'span-1' }))).toBe(Date.UTC(2026, 0, 31, 12));
  });

  it('are not searched in bytes of another form', () => {
    expect(() => isComplete(Buffer.from('{}'))).toThrow(TypeError);
    expect(() => spanIdOf(Buffer.from('{}'))).toThrow(TypeError);
  });
});

describe('annotations', () => {
  const document = stored({ complete: true, spanId: 'span-1' });

  it('are absent from an interaction without any', () => {
    expect(annotated(document, undefined)).toBe(document);
  });

  it('replace the empty members that are stored', () => {
    const resource: object = JSON.parse(document.toString());
    expect(annotated(document, added).toString()).toBe(JSON.stringify({ ...resource, ...added }));
  });

  it('are not added to bytes of another form', () => {
    const none = { reactions: null, mention_invite_prompt_dismissed: false, agent_read_receipts: null };
    expect(() => annotated(Buffer.from('{}'), none)).toThrow(TypeError);
    expect(() => annotated(Buffer.from(`${document.toString()} `), none)).toThrow(TypeError);
  });
});
