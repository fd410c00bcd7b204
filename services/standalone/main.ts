import { runStandalone } from './run.ts';

runStandalone(process.env);
