/* What other teams are told of, put together here as the rest is in features.ts. */
import { CHANNEL, publicChannelEvents } from '#libs/features/channels/index.ts';
import { publicInteractionEvents } from '#libs/features/interactions/index.ts';
import { publicReactionEvents } from '#libs/features/reactions/index.ts';
import type { CorruptEventError } from '#libs/kernel/faults.ts';
import { PublicMessages } from '#libs/platform/live/index.ts';

const EVENTS = [publicChannelEvents, publicInteractionEvents, publicReactionEvents];

/** Every type of event that other teams can be told of. */
export const publicEventTypes = EVENTS.flatMap(({ described }) => described);

export function composePublicMessages(onCorrupt: (error: CorruptEventError) => void): PublicMessages {
  return new PublicMessages({ streamPrefix: `${CHANNEL}-`, events: EVENTS, onCorrupt });
}
