import type { EntityId } from '#libs/kernel/ids.ts';
import type { EventStore, StoredEvent } from '#libs/platform/eventstore/event-store.ts';

/** How far the clocks of those who write down times may be apart. */
const CLOCK_SLACK_MS = 60_000;

/**
 * Whether a command has left events in a stream. Reads backwards, and no further than to when the command
 * can first have run: the cost is that of what has happened since, not of the stream.
 *
 * @throws `Fault` `store_unavailable`
 */
export async function wasAppended(
  store: EventStore,
  stream: string,
  command: { readonly commandId: EntityId; readonly repeatedSinceMs: number },
): Promise<boolean> {
  for await (const event of store.readStream(stream, { direction: 'backwards' })) {
    if (commandIdOf(event) === command.commandId) return true;
    if (event.createdMs < command.repeatedSinceMs - CLOCK_SLACK_MS) return false;
  }
  return false;
}

function commandIdOf({ metadata }: StoredEvent): unknown {
  return typeof metadata === 'object' && metadata !== null && 'commandId' in metadata ? metadata.commandId : undefined;
}
