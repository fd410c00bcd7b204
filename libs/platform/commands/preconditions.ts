import type { DomainEvent, StreamRevision } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';

import type { CommandRunner } from './command-runner.ts';

/**
 * A runner that honours `ifMatch` of every command: a command that would be accepted fails with the fault
 * `precondition_failed` unless its caller allows the revision of the entity that it was decided on. Other refusals
 * come first (RFC 9110, 13.2.1). The condition holds for the state that is appended to, so no write slips in between.
 * A repeated command is not decided, and so not refused for its own events.
 *
 * @param revisionOf revision of the event that changed the entity last; null while there is no entity, which then
 *   no condition matches
 */
export function withPreconditions<State, E extends DomainEvent>(
  runner: CommandRunner<State, E>,
  revisionOf: (state: State) => StreamRevision | null,
): CommandRunner<State, E> {
  return {
    handle(id, context, decide, lookups) {
      const { ifMatch } = context;
      if (ifMatch === undefined) return runner.handle(id, context, decide, lookups);
      return runner.handle(
        id,
        context,
        (state, at) => {
          const decision = decide(state, at);
          if (!decision.ok) return decision;
          const revision = revisionOf(state);
          if (revision === null) throw preconditionFailed('There is no ETag that If-Match could name');
          if (!ifMatch.allows(revision)) throw preconditionFailed('The entity has changed since the given ETag');
          return decision;
        },
        lookups,
      );
    },
  };
}

function preconditionFailed(detail: string): Fault {
  return new Fault('precondition_failed', detail);
}
