/** Interactions: what is said and done in a channel. They are events of the channel's stream. */
import type { ChannelEvent } from '#libs/features/channels/index.ts';
import { runnerOfEvents } from '#libs/platform/commands/index.ts';
import type { CommandRunner } from '#libs/platform/commands/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';
import { withFrames } from '#libs/platform/readmodel/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { Drafts } from './drafts.ts';
import { draftRoutes } from './drafts.routes.ts';
import type { Annotations } from './interaction.annotations.ts';
import type { InteractionContext } from './interaction.decider.ts';
import type { InteractionEvent } from './interaction.events.ts';
import type { InteractionDirectory } from './interaction-directory.ts';
import { InteractionCommands } from './interactions.commands.ts';
import { interactionFrame } from './interactions.frames.ts';
import { interactionEventTypes, interactionLiveCommands } from './interactions.live.ts';
import { interactionsOfChannel } from './interactions.of-channel.ts';
import { interactionsProjection } from './interactions.projection.ts';
import { publicInteractionEvents } from './interactions.public.ts';
import { InteractionQueries } from './interactions.queries.ts';
import { interactionRoutes } from './interactions.routes.ts';
import { InteractionTreeIndex } from './interactions.tree-index.ts';
import { ToolCallUpdates } from './tool-call-updates.ts';

export { Drafts } from './drafts.ts';
export { readerOf } from './interaction.annotations.ts';
export type { Annotation, Annotations, Reader } from './interaction.annotations.ts';
export { interactionId, placeOfInteraction } from './interaction.id.ts';
export type { InteractionPlace } from './interaction.id.ts';
export { InteractionCommands } from './interactions.commands.ts';
export type { InteractionResult } from './interactions.commands.ts';
export { openBefore, openSequences } from './interactions.past.ts';
export type { InteractionDirectory } from './interaction-directory.ts';
export { interactionToPost, requirePlace } from './interactions.inputs.ts';
export { interactionKeys } from './interactions.keys.ts';
export { InteractionQueries } from './interactions.queries.ts';
export {
  interactionParams,
  interactionSchema,
  postInteractionBody,
  readReceiptSchema,
} from './interactions.schemas.ts';
export type { PostInteractionBody } from './interactions.schemas.ts';

interface InteractionsDeps {
  /** Runs all commands of channels in this process. */
  readonly runner: CommandRunner<InteractionContext, ChannelEvent | InteractionEvent>;
  readonly annotations: Annotations;
  readonly directory: InteractionDirectory;
}

export const interactionsModule = {
  name: 'interactions',
  partOfChannel: withFrames(interactionsProjection, interactionFrame),
  publicEvents: publicInteractionEvents,
  liveEvents: interactionEventTypes,
  create(core: Core, { runner, annotations, directory }: InteractionsDeps) {
    const { reader, collections, history } = core;
    const updates = new ToolCallUpdates(core);
    const drafts = new Drafts(core, reader);
    const tree = new InteractionTreeIndex(core);
    const queries = new InteractionQueries(reader, collections, history, { annotations, tree, updates });
    const commands = new InteractionCommands(runnerOfEvents(runner), {
      updates,
      stored: (organizationId, place) =>
        queries.interaction(organizationId, place, { reader: null, includeIncomplete: true }),
    });
    return {
      commands,
      queries,
      drafts,
      ofChannel: interactionsOfChannel(runner, core.store),
      routes(app: HttpApp) {
        interactionRoutes(app, { commands, queries, directory });
        draftRoutes(app, { drafts });
      },
      liveCommands: interactionLiveCommands({ commands, directory }),
      liveValues: [drafts, updates],
    };
  },
} satisfies Module;
