import type { DomainEvent } from '#libs/kernel/event.ts';
import { composeCodecs } from '#libs/platform/eventstore/index.ts';
import type { EventFrame } from '#libs/platform/live/index.ts';

import type { ProjectedRun, Projection } from './projection.ts';
import type { AnyProjection } from './stored-run.ts';
import type { ReadModelName } from './read-model.keys.ts';

type StateOf<P> = P extends Projection<infer State, infer _E> ? State : never;
type EventOf<P> = P extends Projection<infer _State, infer E> ? E : never;

export type ComposedState<Parts extends Readonly<Record<string, AnyProjection>>> = {
  readonly [Name in keyof Parts]: StateOf<Parts[Name]>;
};

export type ComposedEvent<Parts extends Readonly<Record<string, AnyProjection>>> = Extract<
  EventOf<Parts[keyof Parts]>,
  DomainEvent
>;

/**
 * One projection for a stream in which several features write: each part folds only its own events into its own state.
 * Deciders that need several parts get the composed state. A run writes only the parts that it has events of. The
 * projection has frames if every part has.
 */
export function composeProjections<const Parts extends Readonly<Record<string, AnyProjection>>>(
  name: ReadModelName,
  parts: Parts,
): Projection<ComposedState<Parts>, ComposedEvent<Parts>> {
  const entries = Object.entries(parts);
  const ownerOf = new Map(
    entries.flatMap(([name, part]) => [...part.codec.types].map((type) => [type, name] as const)),
  );
  const storedParts = Object.fromEntries(
    entries.flatMap(([name, { storedState }]) => (storedState ? [[name, storedState]] : [])),
  );
  const initialState = Object.fromEntries(entries.map(([name, part]) => [name, part.fold.initialState as unknown]));

  return {
    category: name.category,
    version: name.version,
    parts: Object.keys(parts),
    storedParts,
    codec: composeCodecs<ComposedEvent<Parts>>(entries.map(([, part]) => part.codec)),
    fold: {
      // Built from exactly the names of `parts`, as the type requires.
      initialState: initialState as ComposedState<Parts>,
      evolve(state, event) {
        const name = ownerOf.get(event.type);
        if (name === undefined) return state;
        const before: unknown = state[name];
        const after: unknown = parts[name]?.fold.evolve(before, event);
        return after === before ? state : { ...state, [name]: after };
      },
    },
    project(run, keys) {
      const writes = entries.flatMap(([name, part]) => {
        const own = runOfPart(run, name, ownerOf);
        return own.events.length === 0 && run.isRepair !== true ? [] : [part.project(own, keys)];
      });
      return {
        operations: writes.flatMap(({ operations }) => operations),
        lists: writes.flatMap(({ lists }) => lists),
      };
    },
    ...(entries.every(([, part]) => part.frames) && { frames: (run) => framesInOrder(run, parts, ownerOf) }),
  };
}

/** Takes the next frame of a part at each event of that part. */
function* framesInOrder<State extends Readonly<Record<string, unknown>>, E extends DomainEvent>(
  run: ProjectedRun<State, E>,
  parts: Readonly<Record<string, AnyProjection>>,
  ownerOf: ReadonlyMap<string, string>,
): Generator<EventFrame> {
  const framesOf = new Map<string, Iterator<EventFrame>>();
  for (const { type, revision } of run.events) {
    const name = ownerOf.get(type) ?? '';
    const frames = framesOf.get(name) ?? parts[name]?.frames?.(runOfPart(run, name, ownerOf))[Symbol.iterator]();
    const next = frames?.next();
    if (frames === undefined || next === undefined || next.done === true) {
      throw new TypeError(`${type} at ${revision} has no frame`);
    }
    framesOf.set(name, frames);
    yield next.value;
  }
}

function runOfPart<State extends Readonly<Record<string, unknown>>, E extends DomainEvent>(
  run: ProjectedRun<State, E>,
  name: string,
  ownerOf: ReadonlyMap<string, string>,
): ProjectedRun<unknown, E> {
  return {
    ...run,
    before: run.before[name],
    after: run.after[name],
    events: run.events.filter((event) => ownerOf.get(event.type) === name),
  };
}
