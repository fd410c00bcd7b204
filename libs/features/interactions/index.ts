/** Interactions: the messages, tool calls and notifications of a channel. They are events of the channel's stream. */
import type { HttpApp } from '#libs/platform/http/index.ts';
import { withFrames } from '#libs/platform/readmodel/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { InteractionCommands, interactionsOfChannel, type ChannelRunner } from './interaction.commands.ts';
import { interactionRoutes } from './interaction.http.ts';
import {
  interactionEventTypes,
  interactionFrame,
  interactionLiveCommands,
  publicInteractionEvents,
} from './interaction.live.ts';
import type { InteractionDirectory } from './interaction.requests.ts';
import { draftRoutes, Drafts } from './drafts.ts';
import type { Annotations } from './reads/present.ts';
import { interactionsProjection } from './reads/projection.ts';
import { InteractionQueries } from './reads/queries.ts';
import { InteractionTreeIndex } from './reads/tree.ts';
import { ToolCallUpdates } from './tool-call-updates.ts';

export { InteractionCommands, type InteractionResult, type PostResult } from './interaction.commands.ts';
export { sendChanged } from './interaction.http.ts';
export { interactionCodec } from './interaction.events.ts';
export type { FinalDetails, InteractionEvent, InteractionPosted } from './interaction.events.ts';
export { interactionId, parseInteractionId, type InteractionRef } from './interaction.id.ts';
export { interactionToPost, requireInteractionRef, type InteractionDirectory } from './interaction.requests.ts';
export { interactionParams, interactionSchema, postInteractionBody, readReceiptSchema } from './interaction.schemas.ts';
export type { PostInteractionBody } from './interaction.schemas.ts';
export { Drafts } from './drafts.ts';
export { interactionKeys, interactionKeysOf } from './reads/interaction.keys.ts';
export { openBefore, openSequences } from './reads/past.ts';
export { readerOf, type Annotations, type Reader } from './reads/present.ts';
export { InteractionQueries } from './reads/queries.ts';
export type { Annotation } from './reads/resource.ts';

interface InteractionsDeps {
  /** Runs all commands of channels in this process. */
  readonly runner: ChannelRunner;
  readonly annotations: Annotations;
  readonly directory: InteractionDirectory;
}

export const interactionsModule = {
  name: 'interactions',
  partOfChannel: withFrames(interactionsProjection, interactionFrame),
  publicEvents: publicInteractionEvents,
  liveEvents: interactionEventTypes,
} satisfies Module;

export function createInteractions(core: Core, { runner, annotations, directory }: InteractionsDeps) {
  const { reader, collections, history } = core;
  const updates = new ToolCallUpdates(core);
  const drafts = new Drafts(core, reader);
  const tree = new InteractionTreeIndex(core);
  const queries = new InteractionQueries({ reader, collections, history, annotations, tree, updates });
  const commands = new InteractionCommands(runner, { updates, queries });
  return {
    commands,
    queries,
    drafts,
    directory,
    ofChannel: interactionsOfChannel(runner, core.store),
    routes(app: HttpApp) {
      interactionRoutes(app, { commands, queries, directory });
      draftRoutes(app, drafts);
    },
    liveCommands: interactionLiveCommands({ commands, directory }),
    liveValues: [drafts, updates],
  };
}
