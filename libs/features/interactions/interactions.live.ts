import { liveCommand } from '#libs/platform/http/index.ts';
import type { LiveCommandType } from '#libs/platform/http/index.ts';
import type { EventDescription } from '#libs/platform/live/index.ts';

import { withMemory } from './interaction-directory.ts';
import type { InteractionDirectory } from './interaction-directory.ts';
import type { InteractionCommands } from './interactions.commands.ts';
import { interactionError } from './interactions.errors.ts';
import { interactionToPost } from './interactions.inputs.ts';
import { interactionSchema, postInteractionBody } from './interactions.schemas.ts';

/** What sockets may do with interactions: the same as `POST /api/v1/channels/{id}/interactions`. */
export function interactionLiveCommands(parts: {
  readonly commands: InteractionCommands;
  readonly directory: InteractionDirectory;
}): readonly LiveCommandType[] {
  const { commands } = parts;
  const directory = withMemory(parts.directory);
  return [
    liveCommand({
      type: 'interaction.post',
      summary: 'Post an interaction, or start one that is completed later',
      data: postInteractionBody,
      isDurable: true,
      async run({ context, principal, channelId, data }) {
        const { interaction, spanIsNew, update } = await interactionToPost(context, data, {
          directory,
          writer: principal,
        });
        const result =
          update === null
            ? await commands.post(context, channelId, interaction, { spanIsNew })
            : await commands.update(context, channelId, interaction, update);
        if (!result.ok) throw interactionError(result.rejection, { channelId, body: data });
        return update === null ? result.revision : null;
      },
    }),
  ];
}

// What depends on the reader stands in them as if nobody read.
const data = interactionSchema.nullable();

/** What listeners can be told of interactions. The data are null where the socket has not asked for such ones. */
export const interactionEventTypes: readonly EventDescription[] = [
  { type: 'interaction.posted', summary: 'An interaction was posted, or begun', data },
  { type: 'interaction.updated', summary: 'Content was added to one that is not complete', data },
  { type: 'interaction.completed', summary: 'One that was begun is complete', data },
  { type: 'interaction.failed', summary: 'One that was begun has failed: `metadata.failure` says why', data },
];
