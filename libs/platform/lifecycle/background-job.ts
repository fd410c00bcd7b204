import { backoffMs, pause, type BackoffOptions } from './backoff.ts';
import type { LifecycleLog } from './log.ts';

export interface BackgroundJobOptions {
  readonly name: string;
  readonly log: LifecycleLog;
  /**
   * The work. It watches `signal`, and returns soon after that aborts. When it throws before, that is
   * logged and it runs again after a pause; when it returns before, it is done.
   */
  run(signal: AbortSignal): Promise<void>;
  readonly backoff?: BackoffOptions;
  /** A run that lasted this long counts as healthy: the next pause is a short one again. Default 30,000. */
  readonly healthyAfterMs?: number;
  /** Says which errors no repetition can mend. The job then ends and `onFatal` is told. Default: none. */
  isFatal?(error: unknown): boolean;
  onFatal?(error: unknown): void;
}

export interface BackgroundJob {
  readonly name: string;
  /** Resolves when the job has ended, by `stop` or by itself. Never rejects. */
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

/** Runs work in the background until it is stopped, and again whenever it fails. */
export function startBackgroundJob(options: BackgroundJobOptions): BackgroundJob {
  const { name, log, run, healthyAfterMs = 30_000 } = options;
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
          log.error({ err: error, job: name }, 'a background job has ended for good');
          return options.onFatal?.(error);
        }
        failures = performance.now() - startedAt >= healthyAfterMs ? 1 : failures + 1;
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
