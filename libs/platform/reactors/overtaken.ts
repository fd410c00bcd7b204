import { type StreamRevision, streamRevision } from '#libs/kernel/event.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import { pause } from '#libs/platform/lifecycle/index.ts';

/** Between two looks at the stream. */
const WATCH_MS = 1_000;

/** The process was cancelled, or another worker has continued it: what the work comes to does not count. */
class Overtaken extends Error {
  override readonly name = 'Overtaken';
}

/** An error of its own would cost more than the rest of the watch. */
const OVER = 'the work is over';

/**
 * Does work that takes long and costs something, as long as its process stays at a revision. The signal of the work aborts
 * once the stream has a later event, or when `signal` does.
 *
 * @throws Overtaken, the reason of `signal`, what `work` throws
 */
export async function unlessOvertaken<T>(
  store: Pick<EventStore, 'readStream'>,
  { stream, revision }: { readonly stream: string; readonly revision: StreamRevision },
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  const from = streamRevision(revision + 1);
  const watch = appended(store, stream, from, either).then((isOvertaken) => isOvertaken && over.abort(new Overtaken()));
  try {
    const outcome = await work(either);
    either.throwIfAborted();
    return outcome;
  } finally {
    over.abort(OVER);
    await watch;
  }
}

/** Resolves with true once the stream has an event from `from` on; with false at the end. */
async function appended(
  store: Pick<EventStore, 'readStream'>,
  stream: string,
  from: StreamRevision,
  signal: AbortSignal,
): Promise<boolean> {
  while (!signal.aborted) {
    await pause(WATCH_MS, signal);
    if (signal.aborted) break;
    try {
      for await (const _event of store.readStream(stream, { from, limit: 1 })) return true;
    } catch {
      // The store is unavailable: the work continues, and its outcome is appended once the store answers again.
    }
  }
  return false;
}
