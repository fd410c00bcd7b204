import { runStandalone } from './run.ts';

runStandalone(process.env, { withBanner: true });
