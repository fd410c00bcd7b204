import type { Rejection } from '#libs/kernel/decider.ts';
import type { DomainEvent, StreamRevision } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { Lookup } from '#libs/platform/readmodel/index.ts';

import type { CommandContext } from './command-context.ts';
import type { CommandResult, Decide } from './decide-batch.ts';

/** Runs the commands of one category. See `CommandHandler.handle` for guarantees and errors. */
export interface CommandRunner<State, E extends DomainEvent> {
  handle<R extends Rejection>(
    id: EntityId,
    context: CommandContext,
    decide: Decide<State, E, R>,
    lookups?: readonly Lookup[],
  ): Promise<CommandResult<State, E, R>>;
}

/**
 * The view of one feature on the runner of a stream that several features write to: its own state and events. All views
 * share one queue, so the commands of a channel run in order, whichever feature they belong to.
 */
export function runnerOfPart<
  Whole extends Readonly<Record<string, unknown>>,
  Name extends keyof Whole,
  AnyEvent extends DomainEvent,
  E extends AnyEvent,
>(runner: CommandRunner<Whole, AnyEvent>, name: Name): CommandRunner<Whole[Name], E> {
  return {
    async handle(id, context, decide, lookups) {
      const result = await runner.handle(id, context, (state, at) => decide(state[name], at), lookups);
      if (!result.ok) return result;
      // The events come from the feature's own decider.
      const events = result.events as (typeof result.events)[number][] as never[];
      return { ...result, state: result.state[name], events };
    },
  };
}

/** As {@link runnerOfPart}, for a feature that decides on the whole state and yields events of its own. */
export function runnerOfEvents<State, AnyEvent extends DomainEvent, E extends AnyEvent>(
  runner: CommandRunner<State, AnyEvent>,
): CommandRunner<State, E> {
  // The events come from the feature's own decider.
  return runner as CommandRunner<State, AnyEvent & E>;
}

/**
 * Checks `ifMatch` of every command: a command that would be accepted fails with the fault `precondition_failed` unless
 * its caller allows the revision of the entity that it was decided on. Rejections come first (RFC 9110, 13.2.1). The check
 * is part of the decision, so the expected revision of the append guards it. A repeated command is not decided again, so
 * its own events do not fail it.
 *
 * @param revisionOf revision of the event that last changed the entity; null for a missing entity, which no condition
 *   matches
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
