import type { Rejection } from '#libs/kernel/decider.ts';
import type { DomainEvent } from '#libs/kernel/event.ts';
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
