import { describe, expect, it } from 'vitest';

import type { ChannelSequence } from '#libs/kernel/event.ts';

import { annotated } from './interaction.annotations.ts';
import { interactionResource } from './interactions.projection.ts';
import { isComplete, spanIdOf } from './stored-interaction.ts';

const TRAP = { complete: false, span_id: 'trap', parent_span_id: 'trap', reactions: null };

function stored({ complete, spanId }: { complete: boolean; spanId: string }): Buffer {
  const resource = interactionResource(
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
  return Buffer.from(JSON.stringify(resource));
}

const added = {
  reactions: [{ emoji: '👍', reactor_names: [JSON.stringify(TRAP), JSON.stringify({ complete: true })] }],
  mention_invite_prompt_dismissed: true,
  agent_read_receipts: [{ id: 'receipt-1' }],
};

describe('what is read out of the bytes of an interaction', () => {
  it.each([true, false])('says whether it is complete (%s), whatever its content is', (complete) => {
    const document = stored({ complete, spanId: 'span-1' });
    expect(isComplete(document)).toBe(complete);
    expect(isComplete(annotated(document, added))).toBe(complete);
  });

  it.each(['span-1', 'a "quoted" ü \\ 🎈', ',"parent_span_id":'])('is its span: %s', (spanId) => {
    const document = stored({ complete: true, spanId });
    expect(spanIdOf(document)).toBe(spanId);
    expect(spanIdOf(annotated(document, added))).toBe(spanId);
  });

  it('is not looked for in bytes of another form', () => {
    expect(() => isComplete(Buffer.from('{}'))).toThrow(TypeError);
    expect(() => spanIdOf(Buffer.from('{}'))).toThrow(TypeError);
  });
});
