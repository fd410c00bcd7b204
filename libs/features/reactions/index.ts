/** What is added to interactions: reactions, agents' read receipts, dismissals of the mention-invite prompt. */
import type { InteractionQueries } from '#libs/features/interactions/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';
import { withFrames } from '#libs/platform/readmodel/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { ReactionCommands } from './reactions.commands.ts';
import type { ReactionRunner } from './reactions.commands.ts';
import { reactionFrame } from './reactions.frames.ts';
import type { ReactorNames } from './reactions.inputs.ts';
import { reactionEventTypes, reactionLiveCommands } from './reactions.live.ts';
import { reactionsProjection } from './reactions.projection.ts';
import { publicReactionEvents } from './reactions.public.ts';
import { reactionRoutes } from './reactions.routes.ts';

export { ReactionAnnotations } from './reactions.queries.ts';

interface ReactionsDeps extends ReactorNames {
  /** Runs all commands of channels in this process. */
  readonly runner: ReactionRunner;
  readonly interactions: InteractionQueries;
}

export const reactionsModule = {
  name: 'reactions',
  partOfChannel: withFrames(reactionsProjection, reactionFrame),
  publicEvents: publicReactionEvents,
  liveEvents: reactionEventTypes,
  create(_core: Core, { runner, interactions, nameOf }: ReactionsDeps) {
    const commands = new ReactionCommands(runner);
    return {
      commands,
      routes: (app: HttpApp) => reactionRoutes(app, { commands, interactions, nameOf }),
      liveCommands: reactionLiveCommands({ commands, nameOf }),
    };
  },
} satisfies Module;
