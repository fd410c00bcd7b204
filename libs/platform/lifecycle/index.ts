export { startBackgroundJob, type BackgroundJob } from './background-job.ts';
export { FairSemaphore, QueueFull, type Turn } from './fair-semaphore.ts';
export { silentLog, type LifecycleLog } from './log.ts';
export { StartRefusal, throwUncaught, type RunningRole } from './role.ts';
export { refusalLines, runProcess } from './run-process.ts';
export { backoffMs, pause, retry, unlessAborted, within, type BackoffOptions } from './retry.ts';
export { createStopSequence, type StopSequence } from './stop-sequence.ts';
