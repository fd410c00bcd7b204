/** Commands: load, decide, append at the exact revision, apply to the read model. */
export { metadataOf, type CommandContext, type CommandHandlerOptions, type CommandStores } from './command-context.ts';
export { CommandHandler } from './command-handler.ts';
export type { CommandResult } from './decide-batch.ts';
