/** Interactions: what is said and done in a channel. They are events of the channel's stream. */
export { Drafts } from './drafts.ts';
export { draftRoutes } from './drafts.routes.ts';
export { readerOf } from './interaction.annotations.ts';
export type { Annotation, Annotations, Reader } from './interaction.annotations.ts';
export { interactionId, placeOfInteraction } from './interaction.id.ts';
export type { InteractionPlace } from './interaction.id.ts';
export { InteractionCommands } from './interactions.commands.ts';
export type { InteractionResult } from './interactions.commands.ts';
export { interactionFrame } from './interactions.frames.ts';
export { openBefore, openSequences } from './interactions.past.ts';
export type { InteractionDirectory } from './interaction-directory.ts';
export { interactionToPost, requirePlace } from './interactions.inputs.ts';
export { interactionEventTypes, interactionLiveCommands } from './interactions.live.ts';
export { interactionsOfChannel } from './interactions.of-channel.ts';
export { interactionKeys } from './interactions.keys.ts';
export { publicInteractionEvents } from './interactions.public.ts';
export { interactionsProjection } from './interactions.projection.ts';
export { InteractionTreeIndex } from './interactions.tree-index.ts';
export { InteractionQueries } from './interactions.queries.ts';
export { ToolCallUpdates } from './tool-call-updates.ts';
export { interactionRoutes } from './interactions.routes.ts';
export {
  interactionParams,
  interactionSchema,
  postInteractionBody,
  readReceiptSchema,
} from './interactions.schemas.ts';
export type { PostInteractionBody } from './interactions.schemas.ts';
