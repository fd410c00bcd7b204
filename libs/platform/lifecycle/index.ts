export { startBackgroundJob, type BackgroundJob } from './background-job.ts';
export { EventLoopPace } from './event-loop-pace.ts';
export { FairSemaphore, type FairSemaphoreOptions, QueueFull } from './fair-semaphore.ts';
export { refusalLines, runProcess, silentLog, StartRefusal, throwUncaught } from './run-process.ts';
export type { LifecycleLog, RunningRole } from './run-process.ts';
export {
  backoffMs,
  pause,
  retry,
  settledWithin,
  unlessAborted,
  within,
  withTimeLimit,
  type BackoffOptions,
} from './retry.ts';
export { requireVersion } from './required-version.ts';
export { joinedCall, SharedCalls } from './shared-calls.ts';
export { StopSequence } from './stop-sequence.ts';
export { WakeUp } from './wake-up.ts';
