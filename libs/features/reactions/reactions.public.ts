import { publicEvents } from '#libs/platform/live/index.ts';

import { reactionCodec } from './reaction.events.ts';
import { toldOfReaction } from './reactions.frames.ts';
import { reactionEventTypes } from './reactions.live.ts';

/** What other teams are told of what is added to interactions: the same as listeners. */
export const publicReactionEvents = publicEvents({
  codec: reactionCodec,
  described: reactionEventTypes,
  publish(event, channelId) {
    const { type, data } = toldOfReaction(event, channelId);
    return { type, json: JSON.stringify(data) };
  },
});
