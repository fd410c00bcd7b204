/** The frames that are published when a run is applied. */
import type { DomainEvent, StreamRevision } from '#libs/kernel/event.ts';
import { sequenceOf } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { encodeEvent, encodeHead, joinLines, liveTopic } from '#libs/platform/live/index.ts';

import type { ProjectedRun, Projection } from './projection.ts';
import type { Publication } from './read-model.ts';

/** The events of any append fit; frames that contain earlier, large values may not. */
const MAX_MESSAGE_CHARACTERS = 1024 * 1024;

/**
 * The frames of events that this process has appended. No other process publishes them, so they are published even if
 * another process has applied the run already. Frames beyond the limit are left out: subscribers read them from the log.
 */
export function publicationOfAppended<State, E extends DomainEvent>(
  projection: Projection<State, E>,
  run: ProjectedRun<State, E>,
  last: StreamRevision,
): Publication | null {
  if (projection.frames === undefined) return null;
  const lines: string[] = [];
  let length = 0;
  for (const frame of projection.frames(run)) {
    length += frame.json.length;
    if (length > MAX_MESSAGE_CHARACTERS) {
      lines.push(encodeHead(sequenceOf(last)));
      break;
    }
    lines.push(encodeEvent(frame));
  }
  return { topic: liveTopic(run.organizationId, run.id), message: joinLines(lines), alsoOfDuplicates: true };
}

/** The sequence that the read model reflects now: the process that appended may have died before it published. */
export function publicationOfStored(
  { frames }: Pick<Projection<never, never>, 'frames'>,
  { organizationId, id }: { readonly organizationId: EntityId; readonly id: EntityId },
  last: StreamRevision,
): Publication | null {
  if (frames === undefined) return null;
  return { topic: liveTopic(organizationId, id), message: encodeHead(sequenceOf(last)), alsoOfDuplicates: false };
}
