/** Commands: load, decide, append at the exact revision, apply to the read model, answer. */
export { metadataOf } from './command-context.ts';
export type { CommandContext } from './command-context.ts';
export { CommandHandler } from './command-handler.ts';
export type { CommandHandlerOptions, CommandStores } from './command-handler.ts';
export type { CommandResult } from './decide-batch.ts';
export { runnerOfEvents, runnerOfPart } from './command-runner.ts';
export type { CommandRunner } from './command-runner.ts';
export { withPreconditions } from './preconditions.ts';
