/** Interactions: what is said and done in a channel. They are events of the channel's stream. */
export { InteractionCommands } from './interactions.commands.ts';
export type { InteractionDirectory } from './interaction-directory.ts';
export { interactionsProjection } from './interactions.projection.ts';
export { InteractionQueries } from './interactions.queries.ts';
export { interactionRoutes } from './interactions.routes.ts';
