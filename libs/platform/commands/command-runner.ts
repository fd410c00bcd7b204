import type { Rejection } from '#libs/kernel/decider.ts';
import type { DomainEvent } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { Lookup } from '#libs/platform/readmodel/index.ts';

import type { CommandContext } from './command-context.ts';
import type { CommandResult, Decide } from './decide-batch.ts';

/** What runs the commands of one kind of stream. See `CommandHandler.handle` for guarantees and errors. */
export interface CommandRunner<State, E extends DomainEvent> {
  handle<R extends Rejection>(
    id: EntityId,
    context: CommandContext,
    decide: Decide<State, E, R>,
    lookups?: readonly Lookup[],
  ): Promise<CommandResult<State, E, R>>;
}

/**
 * The runner of a stream in which several features write, as one of them sees it: with its own state and its
 * own events. All parts share one queue, so the commands of a channel stay in order whatever they are about.
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
      // A part's command yields events of that part only: they are what its own decider gave.
      const events = result.events as (typeof result.events)[number][] as never[];
      return { ...result, state: result.state[name], events };
    },
  };
}

/**
 * The runner of a stream in which several features write, as one of them sees it that decides on the whole
 * state, but gives only events of its own.
 */
export function runnerOfEvents<State, AnyEvent extends DomainEvent, E extends AnyEvent>(
  runner: CommandRunner<State, AnyEvent>,
): CommandRunner<State, E> {
  // A command's events are what its own decider gave.
  return runner as CommandRunner<State, AnyEvent & E>;
}
