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
