/** Additions to interactions: reactions, agents' read receipts, dismissals of the mention-invite prompt. */
import type { InteractionQueries } from '../interaction/reads/queries.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';
import { withFrames } from '#libs/platform/readmodel/index.ts';
import type { Module } from '#libs/platform/runtime/index.ts';

import { ReactionCommands, type ReactionRunner, type ReactorNames } from './reaction.commands.ts';
import { reactionRoutes } from './reaction.http.ts';
import { publicReactionEvents, reactionEventTypes, reactionFrame, reactionLiveCommands } from './reaction.live.ts';
import { type ReactionAnnotations, reactionsProjection } from './reaction.read.ts';

interface ReactionsDeps {
  readonly users: ReactorNames;
  /** Runs all commands of channels in this process. */
  readonly runner: ReactionRunner;
  readonly annotations: ReactionAnnotations;
  readonly interactions: InteractionQueries;
}

export const reactionsModule = {
  name: 'reactions',
  partOfChannel: withFrames(reactionsProjection, reactionFrame),
  publicEvents: publicReactionEvents,
  liveEvents: reactionEventTypes,
} satisfies Module;

export function createReactions({ runner, annotations, interactions, users }: ReactionsDeps) {
  const commands = new ReactionCommands(runner);
  return {
    commands,
    /** For exports. */
    reactionsOf: annotations.reactionsOf.bind(annotations),
    routes: (app: HttpApp) => reactionRoutes(app, { commands, interactions, users }),
    liveCommands: reactionLiveCommands({ commands, users }),
  };
}
