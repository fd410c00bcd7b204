import { expect, it } from 'vitest';

import { interactionId } from '#libs/features/channels/index.ts';
import type { ChannelSequence } from '#libs/kernel/event.ts';

import { conversationOf } from './run.conversation.ts';
import type { Run } from './run.ts';

const channelId = '01900000-0000-7000-8000-000000000001';
const sequence = 3 as ChannelSequence;
const run = { channelId, messageId: interactionId({ channelId, sequence }), asked: null, lane: null } as Run;

const message = (of: number): Buffer =>
  Buffer.from(
    JSON.stringify({
      sequence: of,
      participant: { type: 'non_authenticated_user' },
      content_role: 'user_message',
      content: [{ type: 'text', text: `message ${of}` }],
    }),
  );

/** Read models that lack the last messages at the first read of a page, and have them at the next read. */
function lagging(atFirst: readonly number[]): Parameters<typeof conversationOf>[0] {
  let reads = 0;
  return {
    list: async () => {
      const found = reads++ === 0 ? atFirst : [2, 3];
      return { items: found.toReversed().map(message) } as never;
    },
    interaction: async () => message(3),
  };
}

it.each([
  ['all messages', [2, 3]],
  ['no message that the run answers', [2]],
  ['none of the last messages', []],
])('a conversation is whole if the read models have %s at first', async (_what, atFirst) => {
  const said = await conversationOf(lagging(atFirst), run);
  expect(said?.map((one) => ('text' in one ? one.text : null))).toEqual(['message 2', 'message 3']);
});
