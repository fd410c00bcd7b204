/** What is told live when a run is applied, to whoever listens to the entity. */
import type { DomainEvent, StreamRevision } from '#libs/kernel/event.ts';
import { sequenceOf } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { encodeEvent, encodeHead, joinLines, liveTopic } from '#libs/platform/live/index.ts';

import type { ProjectedRun, Projection } from './projection.ts';
import type { News } from './read-model.ts';

/** Characters. What an append may hold fits; what its events make of what is large already may not. */
const MAX_MESSAGE = 1024 * 1024;

/**
 * The frames of events that this process has appended: nobody else publishes them, so they are told of even
 * if the read model got them from another process. What is too much for one message is left to the log.
 */
export function newsOfAppended<State, E extends DomainEvent>(
  projection: Projection<State, E>,
  run: ProjectedRun<State, E>,
  last: StreamRevision,
): News | null {
  if (projection.frames === undefined) return null;
  const lines: string[] = [];
  let length = 0;
  for (const frame of projection.frames(run)) {
    length += frame.json.length;
    if (length > MAX_MESSAGE) {
      lines.push(encodeHead(sequenceOf(last)));
      break;
    }
    lines.push(encodeEvent(frame));
  }
  return { topic: liveTopic(run.organizationId, run.id), message: joinLines(lines), alsoOfDuplicates: true };
}

/** That the read model has come this far: usually known, but whoever appended may have died before telling. */
export function newsOfStored(
  { frames }: Pick<Projection<never, never>, 'frames'>,
  { organizationId, id }: { readonly organizationId: EntityId; readonly id: EntityId },
  last: StreamRevision,
): News | null {
  if (frames === undefined) return null;
  return { topic: liveTopic(organizationId, id), message: encodeHead(sequenceOf(last)), alsoOfDuplicates: false };
}
