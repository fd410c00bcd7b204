import { unreachable } from '#libs/kernel/decider.ts';
import type { ChannelSequence } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { conflict, invalid, mayNotActAs, notFound } from '#libs/platform/http/index.ts';

import { MAX_DEPTH, MAX_OPEN } from './interaction.decider.ts';
import type { InteractionRejection } from './interaction.decider.ts';
import { interactionId } from './interaction.id.ts';

/**
 * What a refused command is answered with, whichever way it came.
 *
 * @param sent.body the input of an error is taken from it
 */
export function interactionError(
  rejection: InteractionRejection,
  sent: { readonly channelId: EntityId; readonly body: unknown },
): Error {
  const { channelId, body } = sent;
  switch (rejection.reason) {
    case 'not_found':
      return notFound();
    case 'archived':
      return conflict('The channel is archived', 'archived');
    case 'parent_not_found':
      return invalid(['body', 'parent_span_id'], 'the channel has no such span', memberOf(body, 'parent_span_id'));
    case 'span_taken':
      return invalid(['body', 'span_id'], 'the channel has this span already', memberOf(body, 'span_id'));
    case 'too_deep':
      return invalid(
        ['body', 'parent_span_id'],
        `a tree is at most ${MAX_DEPTH} deep`,
        memberOf(body, 'parent_span_id'),
      );
    case 'too_many_open':
      return tooManyOpen(channelId, rejection.oldest);
    case 'complete_already':
      return conflict('The interaction is complete', 'complete_already');
    case 'not_the_sender':
      return mayNotActAs();
    default:
      return unreachable(rejection);
  }
}

/** Says which one is open longest, and how to end it: whoever began it may be gone, and nothing else ends it. */
function tooManyOpen(channelId: EntityId, oldest: ChannelSequence | null): Error {
  const limit = `A channel has at most ${MAX_OPEN} incomplete interactions, with 1 MiB together`;
  if (oldest === null) return conflict(limit, 'too_many_open');
  const id = interactionId({ channelId, sequence: oldest });
  return conflict(
    `${limit}: complete one or let it fail first. POST /api/v1/interactions/${id}/fail ends the oldest`,
    'too_many_open',
    {},
    { oldest_incomplete: id },
  );
}

function memberOf(body: unknown, name: string): unknown {
  return typeof body === 'object' && body !== null ? Reflect.get(body, name) : null;
}
