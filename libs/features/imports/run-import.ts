/** Runs the jobs of a source: channels at once, each in its order, and as much in memory as is under way. */

import type { ImportJob, ImportSource, Problem } from './import.model.ts';
import type { ImportTarget } from './import-target.ts';

/** Counted over all runs of an import, except those of a run that was killed before it could note them. */
export interface ImportCounts {
  readonly channels: number;
  readonly imported: number;
  readonly already: number;
  readonly bad: number;
  readonly skipped: number;
}

export const NOTHING_YET: ImportCounts = { channels: 0, imported: 0, already: 0, bad: 0, skipped: 0 };

/** Everything before `mark` is in the log. */
export interface ImportProgress {
  readonly mark: number;
  readonly counts: ImportCounts;
}

export interface ImportObserver {
  bad(problem: Problem): void;
  skipped(problem: Problem): void;
  /** Called often; `progress` only ever moves forward. */
  advanced(progress: ImportProgress, fraction: number): void;
}

/** Jobs under way, and what their messages may come to: both bound the memory. */
const MAX_JOBS = 32;
const MAX_MESSAGES = 4_000;

/**
 * @param from where an earlier run has left off
 * @returns what the whole import has come to, or has until the signal came
 * @throws `Fault` when the stores stay away, errors of the source; all that was begun has ended then
 */
export async function runImport(
  source: ImportSource,
  target: ImportTarget,
  { from, observer, signal }: { from: ImportProgress; observer: ImportObserver; signal: AbortSignal },
): Promise<ImportProgress> {
  const ledger = new Ledger(from, observer);
  const running = new Set<Promise<void>>();
  const tails = new Map<string, Promise<void>>();
  let messages = 0;
  let failure: unknown = null;
  const full = (): boolean => running.size >= MAX_JOBS || messages > MAX_MESSAGES;

  const run = async (job: ImportJob, before: Promise<void> | undefined, entry: Entry): Promise<void> => {
    await before;
    // Behind a job that failed, nothing of its channel may be posted: the order would be another one.
    if (failure !== null) return;
    try {
      ledger.settle(entry, job, await target.post(job));
    } catch (error) {
      failure ??= error;
    }
  };

  try {
    for await (const job of source.jobs(from.mark)) {
      if (signal.aborted || failure !== null) break;
      const key = job.channel?.key ?? '';
      const work = run(job, tails.get(key), ledger.open());
      messages += job.messages.length;
      tails.set(key, work);
      running.add(work);
      void work.then(() => {
        messages -= job.messages.length;
        running.delete(work);
        if (tails.get(key) === work) tails.delete(key);
      });
      while (full()) await Promise.race(running);
    }
  } finally {
    // Also where the source can be read no further: nothing goes on behind the caller's back.
    await Promise.all(running);
  }
  if (failure !== null) throw failure;
  return ledger.progress;
}

interface Entry {
  settled: { readonly counts: ImportCounts; readonly mark: number; readonly fraction: number } | null;
}

/** Jobs end in any order; the mark moves over those that have ended, as long as none before has not. */
class Ledger {
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
    entry.settled = {
      mark: job.mark,
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

  /** A file of conversations has each channel once; the pieces of the others follow closely. */
  #isNew({ channel }: ImportJob): boolean {
    if (channel === null || this.#channels.has(channel.key)) return false;
    if (this.#channels.size >= 10_000) this.#channels.clear();
    this.#channels.add(channel.key);
    return true;
  }

  #advance(): void {
    for (let first = this.#entries[0]; first?.settled; first = this.#entries[0]) {
      const { counts, mark, fraction } = first.settled;
      this.#entries.shift();
      this.progress = { mark, counts: sum(this.progress.counts, counts) };
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
