export { startBackgroundJob, type BackgroundJob, type BackgroundJobOptions } from './background-job.ts';
export { FairSemaphore, QueueFull, type FairSemaphoreOptions, type Turn } from './fair-semaphore.ts';
export { silentLog, type LifecycleLog } from './log.ts';
export { StartRefusal, throwUncaught, type RunningRole } from './role.ts';
export { refusalLines, runProcess, type ProcessOptions } from './run-process.ts';
export { backoffMs, pause, retry, unlessAborted, within, type BackoffOptions, type RetryOptions } from './retry.ts';
export { createStopSequence, type StopSequence } from './stop-sequence.ts';
