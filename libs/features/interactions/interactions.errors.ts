import { unreachable } from '#libs/kernel/decider.ts';
import { conflict, invalid, notFound } from '#libs/platform/http/index.ts';

import { MAX_DEPTH, MAX_OPEN } from './interaction.decider.ts';
import type { InteractionRejection } from './interaction.decider.ts';

/**
 * What a refused command is answered with, whichever way it came.
 * @param body what was sent: the input of an error is taken from it
 */
export function interactionError({ reason }: InteractionRejection, body: unknown): Error {
  switch (reason) {
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
      return conflict(
        `A channel has at most ${MAX_OPEN} incomplete interactions, with 1 MiB together`,
        'too_many_open',
      );
    case 'complete_already':
      return conflict('The interaction is complete', 'complete_already');
    default:
      return unreachable(reason);
  }
}

function memberOf(body: unknown, name: string): unknown {
  return typeof body === 'object' && body !== null ? Reflect.get(body, name) : null;
}
