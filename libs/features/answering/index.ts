/** Answers of agents: which agents answer a message (decide), their runs, and prompts. */
export { invocationsModule } from './decide/module.ts';
export { promptsModule } from './prompt/module.ts';
export { runsModule } from './run/module.ts';
