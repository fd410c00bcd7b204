/**
 * A process that runs only a worker with the reactor of jobs. It joins at its first message, and answers each message
 * with its progress.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { connectEventStore } from '#libs/platform/eventstore/index.ts';
import { silentLog } from '#libs/platform/lifecycle/index.ts';
import { ReactorRunner } from '#libs/platform/reactors/index.ts';
import { HOPELESS, jobReactor, nextOf } from './jobs.ts';

const { EVENTSTORE_URL = '', JOB_CATEGORY = '', WORKER = '', STEP_TIMEOUT_MS = '' } = process.env;
/** Longest duration of a step. */
const STEP_MS = 300;

const { store, clock, groups } = await connectEventStore({ url: EVENTSTORE_URL });
const reactor = jobReactor({
  category: JOB_CATEGORY,
  async handle(_event, job) {
    const next = nextOf(job, WORKER);
    await delay(Math.random() * STEP_MS);
    if (job.state.steps === HOPELESS) throw new Error('hopeless');
    return [next];
  },
  limits: { stepTimeoutMs: Number(STEP_TIMEOUT_MS), maxAttempts: 3, pauseMs: { first: 50, longest: 500 } },
});
const runner = new ReactorRunner(reactor, { store, clock, groups, log: silentLog });
const stop = new AbortController();
let ended: Promise<void> | undefined;
process.on('message', () => {
  ended ??= runner.run(stop.signal);
  process.send?.(runner.progress);
});
process.once('SIGTERM', () => {
  stop.abort();
  void Promise.resolve(ended).then(() => process.exit(0));
});
process.once('disconnect', () => process.exit(1));
