/** Runs a process: signals, uncaught errors, time limits of the stop, exit codes. */
import { redacted } from '#libs/kernel/secrets.ts';

/** The part of a structured log that lifecycle code needs; a pino logger has it. */
export interface LifecycleLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const silentLog: LifecycleLog = { info: () => undefined, warn: () => undefined, error: () => undefined };

export interface RunningRole {
  /** Base URL of a role that listens, such as `http://127.0.0.1:8080`. */
  readonly url?: string | undefined;
  /** Refuses new work, finishes the work in progress, and resolves. Called once. */
  stop(): Promise<void>;
}

/** Reports an error that no caller awaits: `runProcess` prints it and ends the process. */
export function throwUncaught(error: unknown): void {
  setImmediate(() => {
    throw error;
  });
}

/** Parley cannot start for a reason that the operator can remove: printed as one line, without a stack. */
export class StartRefusal extends Error {
  override readonly name = 'StartRefusal';
}

export interface ProcessOptions {
  /**
   * Starts everything. If it rejects, it has stopped everything that it had started.
   *
   * @param signal aborts when the process is asked to stop. A start that may wait for long then stops what it has
   *   started, and rejects with the reason of the signal
   */
  start(signal: AbortSignal): Promise<{ stop(): Promise<readonly string[] | void> }>;
  readonly log: LifecycleLog;
  /** Milliseconds between the request to stop and the stop of the parts. Read after the start. */
  readonly stopDelayMs?: () => number;
}

/** A single Ctrl-C arrives several times: from the terminal, from npm, and from the parent that did the set-up. */
const SAME_SIGNAL_MS = 1_500;
/** Limit of the whole stop, without its delay; afterwards the process exits. */
const STOP_LIMIT_MS = 30_000;

/**
 * Runs until SIGINT, SIGTERM or SIGHUP, or until the parent process ends; a second signal ends it at once. An
 * uncaught error is logged and ends the process, because its state is unknown. A `StartRefusal` after the start is
 * printed as at the start.
 *
 * Exit codes: 0 after a clean stop, 1 after a failed start or stop or an uncaught error, 130 after a second signal.
 */
export function runProcess({ start, log, stopDelayMs = () => 0 }: ProcessOptions): void {
  const print = (line: string): void => void process.stderr.write(`${redacted(line)}\n`);
  // A terminal that was closed: without a listener, the error would be an uncaught one and end the process.
  process.stderr.on('error', () => undefined);
  let firstSignalAt: number | undefined;
  const stopping = new AbortController();
  const started = Promise.withResolvers<{ stop(): Promise<readonly string[] | void> }>();

  async function stop(reason: string): Promise<void> {
    if (firstSignalAt !== undefined) {
      if (performance.now() - firstSignalAt > SAME_SIGNAL_MS) process.exit(130);
      return;
    }
    firstSignalAt = performance.now();
    log.info({ reason }, 'stopping');
    setTimeout(() => {
      print('parley: the stop took too long; ended without finishing it');
      process.exit(1);
    }, STOP_LIMIT_MS + stopDelayMs()).unref();
    stopping.abort();
    const failed = await (await started.promise).stop();
    process.exit(failed === undefined || failed.length === 0 ? 0 : 1);
  }

  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => void stop(signal));
  }
  // The parent holds the other end of this channel, if there is one: see start.mjs.
  if (process.env['PARLEY_SUPERVISED'] === '1') process.once('disconnect', () => void stop('the parent process ended'));
  exitOnUncaughtErrors(log, print);

  start(stopping.signal).then(started.resolve, (error: unknown) => {
    if (stopping.signal.aborted && error === stopping.signal.reason) process.exit(0);
    const lines = refusalLines(error);
    if (lines === undefined) log.error({ err: error }, 'could not start');
    for (const line of lines ?? [`could not start: ${String(error)}`]) print(`parley: ${line}`);
    process.exit(1);
  });
}

/** The lines to print for an error that the operator can solve; undefined for a bug. */
export function refusalLines(error: unknown): readonly string[] | undefined {
  if (error instanceof StartRefusal) return [error.message];
  // By name, not by class: this directory and the configuration are in the same layer.
  if (error instanceof Error && error.name === 'ConfigError') return error.message.split('\n');
  return undefined;
}

function exitOnUncaughtErrors(log: LifecycleLog, print: (line: string) => void): void {
  const exit = (error: unknown): void => {
    const refusal = refusalLines(error);
    for (const line of refusal ?? []) print(`parley: ${line}`);
    if (refusal !== undefined) process.exit(1);
    log.error({ err: error }, 'an uncaught error ends the process');
    print(`parley: uncaught error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    process.exit(1);
  };
  process.on('unhandledRejection', exit);
  process.on('uncaughtException', exit);
}
