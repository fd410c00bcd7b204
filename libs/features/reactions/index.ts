/** What is added to interactions: reactions, agents' read receipts, dismissals of the mention-invite prompt. */
export type { ReactionEvent } from './reaction.events.ts';
export { ReactionCommands } from './reactions.commands.ts';
export { reactionFrame } from './reactions.frames.ts';
export { publicReactionEvents } from './reactions.public.ts';
export { reactionsProjection } from './reactions.projection.ts';
export { ReactionAnnotations } from './reactions.queries.ts';
export { reactionEventTypes, reactionLiveCommands } from './reactions.live.ts';
export { reactionRoutes } from './reactions.routes.ts';
