import type { DomainEvent, StreamEvent } from './event.ts';

/**
 * Folds the events of an entity. Pure: `evolve` never throws, reads no clock, and returns the same state for the same
 * events in every process and at every replay.
 */
export interface Fold<State, E extends DomainEvent> {
  readonly initialState: State;
  evolve(state: State, event: StreamEvent<E>): State;
}

/** The result of a decider: events, or the reason to reject the command. */
export type Decision<E extends DomainEvent, R extends Rejection> =
  { readonly ok: true; readonly events: readonly E[] } | { readonly ok: false; readonly rejection: R };

/** A rejection by the domain, discriminated by `reason`; routes map each reason to a status. */
export interface Rejection {
  readonly reason: string;
}

export function accept<E extends DomainEvent>(
  ...events: readonly E[]
): { readonly ok: true; readonly events: readonly E[] } {
  return { ok: true, events };
}

export function refuse<R extends Rejection>(rejection: R): { readonly ok: false; readonly rejection: R } {
  return { ok: false, rejection };
}

/** Folds `events` onto `state`, oldest first. */
export function foldEvents<State, E extends DomainEvent>(
  fold: Fold<State, E>,
  state: State,
  events: Iterable<StreamEvent<E>>,
): State {
  let folded = state;
  for (const event of events) folded = fold.evolve(folded, event);
  return folded;
}

/** Marks a `switch` as exhaustive: adding a case elsewhere becomes a type error here. */
export function unreachable(value: never): never {
  throw new TypeError(`unexpected case: ${JSON.stringify(value)}`);
}
