import { describe, expect, it } from 'vitest';

import type { ChannelSequence } from '#libs/kernel/event.ts';

import { annotated } from './interaction.annotations.ts';
import { interactionResource } from './interactions.projection.ts';

const resource = interactionResource(
  {
    participant: { type: 'system' },
    content: [{ type: 'text', text: '"reactions":null}' }],
    contentRole: 'user_message',
    complete: true,
    metadata: { note: 'ü 🎈' },
    invocationConfig: null,
    turnId: 'turn-1',
    spanId: 'span-1',
    parentSpanId: null,
    depth: 1,
    organizationApplication: null,
    sequence: 2 as ChannelSequence,
    createdAt: '2026-01-31T12:00:00.000Z',
    failure: null,
  },
  { organizationId: 'org-1', channelId: '0198c1f0-0000-7000-8000-000000000001' },
);
const stored = Buffer.from(JSON.stringify(resource));

describe('an interaction that nothing was added to', () => {
  it('is passed through as it is stored', () => {
    expect(annotated(stored, undefined)).toBe(stored);
  });
});

describe('what was added to an interaction', () => {
  it('takes the place of the nothing that is stored', () => {
    const annotation = {
      reactions: [{ emoji: '👍' }],
      mention_invite_prompt_dismissed: true,
      agent_read_receipts: [{ id: 'receipt-1' }],
    };
    const spliced = annotated(stored, annotation).toString();
    expect(JSON.parse(spliced)).toEqual({ ...resource, ...annotation });
    expect(spliced).toBe(JSON.stringify({ ...resource, ...annotation }));
  });

  it('is never put into bytes of another form', () => {
    const nothing = { reactions: null, mention_invite_prompt_dismissed: false, agent_read_receipts: null };
    expect(() => annotated(Buffer.from('{}'), nothing)).toThrow(TypeError);
    expect(() => annotated(Buffer.from(`${stored.toString()} `), nothing)).toThrow(TypeError);
  });
});
