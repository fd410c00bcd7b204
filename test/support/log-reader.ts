/** Reads the whole log through the official client and not through Parley's code: checkers rely on it. */
import { connectClient } from '#libs/platform/eventstore/client/connect-client.ts';

/** An event of the log as it is stored. */
export interface LogEvent {
  readonly stream: string;
  readonly revision: number;
  readonly id: string;
  readonly type: string;
  readonly data: Record<string, unknown>;
  readonly metadata: Record<string, unknown>;
}

/** Events of all streams whose names start with `prefix`, in the order of the log. */
export async function readLog(eventstoreUrl: string, prefix: string): Promise<LogEvent[]> {
  const client = connectClient(eventstoreUrl);
  try {
    const events: LogEvent[] = [];
    for await (const { event } of client.readAll({ direction: 'forwards', fromPosition: 'start' })) {
      if (event === undefined || !event.streamId.startsWith(prefix)) continue;
      events.push({
        stream: event.streamId,
        revision: Number(event.revision),
        id: event.id,
        type: event.type,
        data: asRecord(event.data),
        metadata: asRecord(event.metadata),
      });
    }
    return events;
  } finally {
    await client.dispose();
  }
}

export function asRecord(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new TypeError(`an object was expected: ${JSON.stringify(value)}`);
  }
  return { ...value };
}
