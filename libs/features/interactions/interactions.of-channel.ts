import { CHANNEL } from '#libs/features/channels/index.ts';
import type { ChannelEvent, ChannelInteractions } from '#libs/features/channels/index.ts';
import { accept } from '#libs/kernel/decider.ts';
import { streamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandRunner } from '#libs/platform/commands/index.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import { streamName } from '#libs/platform/readmodel/index.ts';

import { decideEndings } from './interaction.decider.ts';
import type { InteractionContext } from './interaction.decider.ts';
import type { InteractionEvent } from './interaction.events.ts';
import { placeOfInteraction } from './interaction.id.ts';

/** See the port: what commands of a channel need of its interactions. */
export function interactionsOfChannel(
  runner: CommandRunner<InteractionContext, ChannelEvent | InteractionEvent>,
  store: Pick<EventStore, 'readStream'>,
): ChannelInteractions {
  return {
    wasPosted: (channelId, interactionId) => wasPosted(store, channelId, interactionId),
    async archive(channelId, context, decide) {
      const result = await runner.handle(channelId, context, ({ channel, interactions }) => {
        const endings = decideEndings(interactions);
        const decision = decide(channel, endings.length > 0);
        if (!decision.ok || decision.events.length === 0) return decision;
        return accept<ChannelEvent | InteractionEvent>(...endings, ...decision.events);
      });
      if (!result.ok) return result;
      const events = result.events.filter((event) => event.type === 'ChannelArchived.v1');
      return { ...result, state: result.state.channel, events };
    },
  };
}

async function wasPosted(
  store: Pick<EventStore, 'readStream'>,
  channelId: EntityId,
  interactionId: EntityId,
): Promise<boolean> {
  const place = placeOfInteraction(interactionId);
  if (place?.channelId !== channelId) return false;
  const from = streamRevision(place.sequence - 1);
  for await (const event of store.readStream(streamName(CHANNEL, channelId), { from, limit: 1 })) {
    return event.type === 'InteractionPosted.v1';
  }
  return false;
}
