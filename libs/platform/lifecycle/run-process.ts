/** What a `main.ts` does around the start and the stop of its parts: signals, last resorts, exit codes. */
import type { LifecycleLog } from './log.ts';
import { StartRefusal } from './role.ts';

export interface ProcessOptions {
  /**
   * Starts everything. What it started before it failed, it stopped again.
   *
   * @param signal aborts when the process is told to stop. Who can be kept waiting then gives up, and rejects with the
   *   reason of the signal when all is stopped again
   */
  start(signal: AbortSignal): Promise<{ stop(): Promise<readonly string[] | void> }>;
  readonly log: LifecycleLog;
  /** Writes a line for the operator. Default: standard error. */
  readonly print?: (line: string) => void;
  /** Milliseconds that the parts go on when the process was told to stop, known once they have been started. */
  readonly stopDelayMs?: () => number;
}

/** One press of Ctrl-C arrives several times: from the terminal, from npm, from the set-up in front of us. */
const SAME_SIGNAL_MS = 1_500;
/** The whole stop takes no longer than this, besides its delay; else the process ends hard. */
const STOP_LIMIT_MS = 30_000;

/**
 * Runs until SIGINT, SIGTERM or SIGHUP, or until the process in front of us is gone; a second signal ends
 * it at once. An error that nobody caught is logged and ends the process: its state is unknown. A refusal that
 * comes to light only after the start is told like one at the start.
 *
 * Exit codes: 0 after a clean stop, 1 when it could not start or stop properly or an error was left over,
 * 130 when it was told twice.
 */
export function runProcess({ start, log, print = printError, stopDelayMs = () => 0 }: ProcessOptions): void {
  let firstSignalAt: number | undefined;
  const told = new AbortController();
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
    told.abort();
    const failed = await (await started.promise).stop();
    process.exit(failed === undefined || failed.length === 0 ? 0 : 1);
  }

  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => void stop(signal));
  }
  // The set-up that started us holds the other end of this channel. Only if there is one: see start.mjs.
  if (process.env['PARLEY_SUPERVISED'] === '1') process.once('disconnect', () => void stop('the parent is gone'));
  exitOnLeftOverErrors(log, print);

  start(told.signal).then(started.resolve, (error: unknown) => {
    if (told.signal.aborted && error === told.signal.reason) process.exit(0);
    const lines = refusalLines(error);
    if (lines === undefined) log.error({ err: error }, 'could not start');
    for (const line of lines ?? [`could not start: ${String(error)}`]) print(`parley: ${line}`);
    process.exit(1);
  });
}

/** The lines to print for an error that is the operator's to solve; undefined for a defect of ours. */
export function refusalLines(error: unknown): readonly string[] | undefined {
  if (error instanceof StartRefusal) return [error.message];
  // Told apart by name, not by class: the configuration does not depend on the life cycle, nor this on it.
  if (error instanceof Error && error.name === 'ConfigError') return error.message.split('\n');
  return undefined;
}

function exitOnLeftOverErrors(log: LifecycleLog, print: (line: string) => void): void {
  const exit = (error: unknown): void => {
    const refusal = refusalLines(error);
    for (const line of refusal ?? []) print(`parley: ${line}`);
    if (refusal !== undefined) process.exit(1);
    log.error({ err: error }, 'an error was left over; ending the process');
    print(`parley: an error was left over: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    process.exit(1);
  };
  process.on('unhandledRejection', exit);
  process.on('uncaughtException', exit);
}

function printError(line: string): void {
  process.stderr.write(`${line}\n`);
}
