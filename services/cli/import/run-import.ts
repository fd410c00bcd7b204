/** Runs the jobs of a source: channels concurrently, the jobs of one channel in order, with bounded memory. */

import type { ImportJob, ImportSource, Problem } from './import.model.ts';
import type { ImportTarget } from './import-target.ts';

/** Totals over all runs of an import, except what a killed run had not saved. */
interface ImportCounts {
  readonly channels: number;
  readonly imported: number;
  readonly already: number;
  readonly bad: number;
  readonly skipped: number;
}

export const NOTHING_YET: ImportCounts = { channels: 0, imported: 0, already: 0, bad: 0, skipped: 0 };

/** Everything before `checkpoint` is in the log. */
export interface ImportProgress {
  readonly checkpoint: number;
  readonly counts: ImportCounts;
}

interface ImportObserver {
  bad(problem: Problem): void;
  skipped(problem: Problem): void;
  leftOut(name: string): void;
  /** Called often; `progress` never moves backwards. */
  advanced(progress: ImportProgress, fraction: number): void;
}

/** Limits of jobs and messages in flight, which bound the memory. */
const MAX_JOBS = 32;
const MAX_MESSAGES = 4_000;

/**
 * @param from the progress of an earlier run
 * @returns the progress at the end of the source, or when the signal aborted
 * @throws `Fault` when the stores stay unavailable; errors of the source. All jobs have ended by then
 */
export async function runImport(
  source: ImportSource,
  target: ImportTarget,
  { from, observer, signal }: { from: ImportProgress; observer: ImportObserver; signal: AbortSignal },
): Promise<ImportProgress> {
  const ledger = new ProgressLedger(from, observer);
  const running = new Set<Promise<void>>();
  const tails = new Map<string, Promise<void>>();
  let messages = 0;
  let failure: unknown = null;
  const full = (): boolean => running.size >= MAX_JOBS || messages > MAX_MESSAGES;
  let onEnded = (): void => undefined;
  const jobEnded = (): Promise<void> => new Promise((resolve) => (onEnded = resolve));

  const run = async (job: ImportJob, before: Promise<unknown>, entry: Entry): Promise<void> => {
    await before;
    // After a failed job, posting later jobs of its channel would change the order of the channel.
    if (failure !== null) return;
    try {
      ledger.settle(entry, job, await target.post(job));
    } catch (error) {
      failure ??= error;
    }
  };

  try {
    for await (const job of source.jobs(from.checkpoint)) {
      if (signal.aborted || failure !== null) break;
      const key = job.channel?.key ?? '';
      // A thread is created after the messages of the channel that it belongs to.
      const before = Promise.all([tails.get(key), tails.get(job.channel?.thread?.parentKey ?? key)]);
      const work = run(job, before, ledger.open());
      messages += job.messages.length;
      tails.set(key, work);
      running.add(work);
      void work.then(() => {
        messages -= job.messages.length;
        running.delete(work);
        if (tails.get(key) === work) tails.delete(key);
        onEnded();
      });
      while (full()) await jobEnded();
    }
  } finally {
    // Also after an error of the source: no job may outlive this call.
    await Promise.all(running);
  }
  if (failure !== null) throw failure;
  return ledger.progress;
}

interface Entry {
  settled: { readonly counts: ImportCounts; readonly checkpoint: number; readonly fraction: number } | null;
}

/** Jobs end in any order; the checkpoint advances over the jobs that have ended without a gap. */
class ProgressLedger {
  progress: ImportProgress;
  readonly #entries: Entry[] = [];
  readonly #channels = new Set<string>();
  readonly #observer: ImportObserver;

  constructor(from: ImportProgress, observer: ImportObserver) {
    this.progress = from;
    this.#observer = observer;
  }

  open(): Entry {
    const entry: Entry = { settled: null };
    this.#entries.push(entry);
    return entry;
  }

  settle(entry: Entry, job: ImportJob, posted: Awaited<ReturnType<ImportTarget['post']>>): void {
    const bad = [...job.bad, ...posted.bad];
    bad.forEach((problem) => this.#observer.bad(problem));
    job.skipped.forEach((problem) => this.#observer.skipped(problem));
    job.leftOut?.forEach((name) => this.#observer.leftOut(name));
    entry.settled = {
      checkpoint: job.checkpoint,
      fraction: job.fraction,
      counts: {
        channels: this.#isNew(job) ? 1 : 0,
        imported: posted.imported,
        already: posted.already,
        bad: bad.length,
        skipped: job.skipped.length,
      },
    };
    this.#advance();
  }

  /** Bounded: the jobs of one channel are close together in every source. */
  #isNew({ channel }: ImportJob): boolean {
    if (channel === null || this.#channels.has(channel.key)) return false;
    if (this.#channels.size >= 10_000) this.#channels.clear();
    this.#channels.add(channel.key);
    return true;
  }

  #advance(): void {
    for (let first = this.#entries[0]; first?.settled; first = this.#entries[0]) {
      const { counts, checkpoint, fraction } = first.settled;
      this.#entries.shift();
      this.progress = { checkpoint, counts: sum(this.progress.counts, counts) };
      this.#observer.advanced(this.progress, fraction);
    }
  }
}

function sum(one: ImportCounts, other: ImportCounts): ImportCounts {
  return {
    channels: one.channels + other.channels,
    imported: one.imported + other.imported,
    already: one.already + other.already,
    bad: one.bad + other.bad,
    skipped: one.skipped + other.skipped,
  };
}
