import { unreachable } from '#libs/kernel/decider.ts';
import { conflict, forbidden, notFound } from '#libs/platform/http/index.ts';

import { MAX_MARKS, MAX_WITHDRAWN } from './reaction.decider.ts';
import type { ReactionRejection } from './reaction.decider.ts';

/** What a refused command is answered with, whichever way it came. */
export function reactionError({ reason }: ReactionRejection): Error {
  switch (reason) {
    case 'not_found':
      return notFound();
    case 'archived':
      return conflict('The channel is archived', 'archived');
    case 'too_many_reactions':
      return conflict(
        `An interaction takes ${MAX_MARKS} reactions and read receipts, and ${MAX_WITHDRAWN} that are taken back`,
        'too_many_reactions',
      );
    case 'not_a_user_message':
      return conflict('Read receipts belong to messages of users', 'not_a_user_message');
    case 'not_the_sender':
      return forbidden('Only the user who sent the message can dismiss its prompt', 'not_the_sender');
    default:
      return unreachable(reason);
  }
}
