import type { GlobalPosition } from '#libs/kernel/event.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

/**
 * Shows how far something that follows the log has come, beside where the log ends. Positions are shown as their
 * commit part, which grows by one an event in the embedded event store, and by about the bytes in EventStoreDB.
 * Nothing is shown while there is none.
 */
export function observePosition(
  { metrics, feed }: Pick<Platform, 'metrics' | 'feed'>,
  { name, help, read }: { readonly name: string; readonly help: string; readonly read: () => GlobalPosition | null },
): void {
  metrics.observedGauge('log_head', 'Commit position of the newest event of the log', async () =>
    commitOf(await feed.head()),
  );
  metrics.observedGauge(name, help, () => commitOf(read()));
}

function commitOf(position: GlobalPosition | null): number {
  return position === null ? Number.NaN : Number(position.commit);
}
