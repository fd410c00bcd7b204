import type { AllStreamResolvedEvent } from '@eventstore/db-client';
import type { GlobalPosition } from '#libs/kernel/event.ts';
import { storeUnavailable } from '#libs/kernel/faults.ts';
import { readFault } from './client-errors.ts';
import type { EventStoreConnection } from './connection.ts';
import { EventPull } from './event-pull.ts';

const DEADLINE_MS = 3000;

/** Position of the last event of the log, as its leader knows it, or null while it is empty; one round trip. Errors: `Fault`. */
export async function readLastPosition(
  connection: EventStoreConnection,
  deadlineMs = DEADLINE_MS,
): Promise<GlobalPosition | null> {
  const read = connection.client.readAll({
    direction: 'backwards',
    fromPosition: 'end',
    maxCount: 1,
    requiresLeader: true,
  });
  const pull = new EventPull<AllStreamResolvedEvent>(read, () => read.cancel());
  try {
    for (;;) {
      const [last] = pull.take(1);
      if (last) return last.event?.position ?? last.link?.position ?? null;
      if (pull.ended) return null;
      if (!(await pull.wait(deadlineMs))) throw storeUnavailable('event store');
    }
  } catch (error) {
    throw readFault(error);
  } finally {
    pull.close();
  }
}
