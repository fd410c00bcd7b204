import { sequenceOf } from '#libs/kernel/event.ts';
import type { StreamEvent } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { eventFrame, FRAME_FLAG } from '#libs/platform/live/index.ts';
import type { EventFrame } from '#libs/platform/live/index.ts';
import type { ProjectedEvent } from '#libs/platform/readmodel/index.ts';

import { changed, posted } from './interaction.decider.ts';
import type { Interaction, InteractionsState } from './interaction.decider.ts';
import type { InteractionEvent } from './interaction.events.ts';
import { interactionResource, postedJson } from './interactions.projection.ts';

const TYPES = {
  'InteractionPosted.v1': 'interaction.posted',
  'InteractionContentAppended.v1': 'interaction.updated',
  'InteractionCompleted.v1': 'interaction.completed',
  'InteractionFailed.v1': 'interaction.failed',
} as const satisfies Record<InteractionEvent['type'], string>;

/**
 * What listeners are told of an interaction: as it is after the event, and as it is stored; what depends on who
 * reads it stands there as if nobody did.
 */
export function interactionFrame(one: ProjectedEvent<InteractionsState, InteractionEvent>): EventFrame {
  const { organizationId, id: channelId, event } = one;
  const interaction = interactionAfter(one);
  return eventFrame({
    sequence: sequenceOf(event.revision),
    type: TYPES[event.type],
    at: event.metadata.at,
    data: interaction && { json: jsonOf(interaction, event, { organizationId, channelId }) },
    flags: interaction === null ? 0 : flagsOf(interaction),
  });
}

function jsonOf(
  interaction: Interaction,
  event: StreamEvent<InteractionEvent>,
  owner: { readonly organizationId: EntityId; readonly channelId: EntityId },
): string {
  return event.type === 'InteractionPosted.v1'
    ? postedJson(event, owner)
    : JSON.stringify(interactionResource(interaction, owner));
}

/** Null where an event changes nothing: as in the fold, what is complete does not change. */
function interactionAfter({ before, event }: ProjectedEvent<InteractionsState, InteractionEvent>): Interaction | null {
  if (event.type === 'InteractionPosted.v1') return posted(event);
  const open = before.open[event.data.sequence];
  return open === undefined ? null : changed(open, event);
}

function flagsOf({ parentSpanId, complete }: Interaction): number {
  return (parentSpanId === null ? 0 : FRAME_FLAG.nested) | (complete ? 0 : FRAME_FLAG.incomplete);
}
