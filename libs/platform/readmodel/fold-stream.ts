import type { DomainEvent } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { EventStore, ReadStreamOptions } from '#libs/platform/eventstore/index.ts';

import { streamName } from './projection.ts';
import type { Projection } from './projection.ts';

/**
 * The state of an entity by its whole stream, without Redis. For short streams, where a read model that lags behind
 * would not do.
 *
 * @throws `Fault` `store_unavailable`
 */
export async function foldStream<State, E extends DomainEvent>(
  store: Pick<EventStore, 'readStream'>,
  { category, codec, fold }: Projection<State, E>,
  id: EntityId,
  options: Pick<ReadStreamOptions, 'deadlineMs'> = {},
): Promise<State> {
  let state = fold.initialState;
  for await (const stored of store.readStream(streamName(category, id), options)) {
    const event = codec.decode(stored);
    if (event !== null) state = fold.evolve(state, event);
  }
  return state;
}
