/** Answers of agents: which agents answer a message (decide), their runs, and prompts. */
export { createInvocations, invocationsModule } from './decide/module.ts';
export { createPrompts, promptsModule } from './prompt/module.ts';
export { createRuns, runsModule } from './run/module.ts';
