import { backoffMs, pause, type BackoffOptions } from './retry.ts';
import type { LifecycleLog } from './run-process.ts';

/** Duration after which a run counts as healthy: the backoff then starts again. */
const HEALTHY_AFTER_MS = 30_000;

export interface BackgroundJobOptions {
  readonly name: string;
  readonly log: LifecycleLog;
  /**
   * The work. It returns soon after `signal` aborts. If it throws before that, the error is logged and the work
   * runs again after a pause; if it returns before that, the job ends.
   */
  run(signal: AbortSignal): Promise<void>;
  readonly backoff?: BackoffOptions;
  /** Errors that a retry cannot fix: the job ends and calls `onFatal`. Default: none. */
  isFatal?(error: unknown): boolean;
  onFatal?(error: unknown): void;
}

export interface BackgroundJob {
  readonly name: string;
  /** Resolves when the job has ended, by `stop` or by itself. Never rejects. */
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

/** Runs work in the background until it returns or is stopped; retries it when it throws. */
export function startBackgroundJob(options: BackgroundJobOptions): BackgroundJob {
  const { name, log, run } = options;
  const abort = new AbortController();
  const { signal } = abort;

  async function repeat(): Promise<void> {
    for (let failures = 0; !signal.aborted;) {
      const startedAt = performance.now();
      try {
        return await run(signal);
      } catch (error) {
        if (signal.aborted) return;
        if (options.isFatal?.(error) === true) {
          log.error({ err: error, job: name }, 'a background job failed and will not run again');
          return options.onFatal?.(error);
        }
        failures = performance.now() - startedAt >= HEALTHY_AFTER_MS ? 1 : failures + 1;
        const pauseMs = backoffMs(failures, options.backoff);
        log.error({ err: error, job: name, pauseMs }, 'a background job failed and will run again');
        await pause(pauseMs, signal);
      }
    }
  }

  const ended = repeat();
  return {
    name,
    ended,
    async stop() {
      abort.abort();
      await ended;
    },
  };
}
