/*
 * Keeps the past of an entity cheap to read, whatever its age. A stream is divided into blocks of a fixed number of
 * revisions. At the first event of each block, the projection stores the time of the event, and those values of the state
 * before it that have changed since they were last stored. A reader starts there and folds at most one block.
 *
 * The stored values depend on the events and their revisions only, not on batches, so a rebuild writes the same.
 */
import { hash } from 'node:crypto';

import { streamRevision, type DomainEvent, type StreamEvent, type StreamRevision } from '#libs/kernel/event.ts';

import type { Projection } from './projection.ts';
import type { EntityKeys } from './read-model.keys.ts';
import type { WriteOperation } from './read-model.ts';

/** Revisions in a block: larger blocks need less memory, and more events to fold for a read of the past. */
export const BLOCK = 100;

export interface HistoryState {
  /** Block of the newest event, -1 before the first. */
  readonly block: number;
  /** The latest time, in Unix milliseconds, that the first event of any block so far is stamped with. */
  readonly latestMs: number;
  /** By name, digest of the value that was kept last. */
  readonly digests: Readonly<Record<string, string>>;
}

export type WithHistory<State> = State & { readonly history: HistoryState };

/** Values of a state to keep for readers of the past, by name. JSON. */
export type KeptValues<State> = Readonly<Record<string, (state: State) => unknown>>;

/** Keys of one entity's history, in the entity's slot. */
export interface HistoryKeys {
  /** Sorted set: for each block, the revision of its first event (12 digits) by `latestMs`. */
  readonly times: string;
  /** Hash: block -> the value before the block's first event, for blocks before which it had changed. */
  values(name: string): string;
  /** Sorted set: those blocks, by themselves. */
  blocks(name: string): string;
}

export function historyKeys({ revision }: EntityKeys): HistoryKeys {
  const prefix = `${revision.slice(0, -'revision'.length)}history:`;
  return {
    times: `${prefix}times`,
    values: (name) => `${prefix}${name}`,
    blocks: (name) => `${prefix}${name}:blocks`,
  };
}

export function blockOf(revision: StreamRevision): number {
  return Math.floor(revision / BLOCK);
}

/** The first revision of the block that a revision is in. */
export function blockStart(revision: StreamRevision): StreamRevision {
  return streamRevision(blockOf(revision) * BLOCK);
}

/** The projection, which also stores the history that {@link HistoryReader} reads. */
export function withHistory<State extends object, E extends DomainEvent>(
  projection: Projection<State, E>,
  kept: KeptValues<State>,
): Projection<WithHistory<State>, E> {
  const { fold } = projection;
  const digests = digestsOf(kept, fold.initialState);
  const evolve = (state: WithHistory<State>, event: StreamEvent<E>): WithHistory<State> => {
    const after: State = fold.evolve(state, event);
    if (blockOf(event.revision) !== state.history.block) {
      return { ...after, history: historyAfter(state, event, kept) };
    }
    return after === state ? state : { ...after, history: state.history };
  };
  return {
    ...projection,
    parts: projection.parts && [...projection.parts, 'history'],
    fold: { initialState: { ...fold.initialState, history: { block: -1, latestMs: 0, digests } }, evolve },
    project(run, keys) {
      const { operations, lists } = projection.project(run, keys);
      // Most runs stay within a block.
      if (run.after.history === run.before.history) return { operations, lists };
      const own: WriteOperation[] = [];
      const last = run.after.history;
      const write = (before: WithHistory<State>, history: HistoryState, first: StreamRevision): void => {
        own.push(...blockWrites(before, history, first, { kept, keys: historyKeys(keys) }));
      };
      let state = run.before;
      for (const event of run.events) {
        // The events of the last block are not folded again: its values are those before it.
        if (blockOf(event.revision) === last.block) {
          write(state, last, event.revision);
          break;
        }
        const after = evolve(state, event);
        if (after.history !== state.history) write(state, after.history, event.revision);
        state = after;
      }
      return { operations: [...operations, ...own], lists };
    },
  };
}

function historyAfter<State>(state: WithHistory<State>, event: StreamEvent, kept: KeptValues<State>): HistoryState {
  return {
    block: blockOf(event.revision),
    latestMs: Math.max(state.history.latestMs, Date.parse(event.metadata.at)),
    // Before the first event, the state is the initial one.
    digests: state.history.block < 0 ? state.history.digests : digestsOf(kept, state),
  };
}

function blockWrites<State>(
  before: WithHistory<State>,
  { block, latestMs, digests }: HistoryState,
  first: StreamRevision,
  { kept, keys }: { readonly kept: KeptValues<State>; readonly keys: HistoryKeys },
): WriteOperation[] {
  const operations: WriteOperation[] = [{ command: 'ZADD', key: keys.times, args: [latestMs, revisionMember(first)] }];
  for (const [name, valueOf] of Object.entries(kept)) {
    if (digests[name] === before.history.digests[name]) continue;
    operations.push(
      { command: 'HSET', key: keys.values(name), args: [block, JSON.stringify(valueOf(before))] },
      { command: 'ZADD', key: keys.blocks(name), args: [block, block] },
    );
  }
  return operations;
}

const REVISION_DIGITS = 12;

/** Members with equal scores are ordered by revision. */
export function revisionMember(revision: StreamRevision): string {
  return String(revision).padStart(REVISION_DIGITS, '0');
}

const DIGEST_CHARACTERS = 22;

function digestsOf<State>(kept: KeptValues<State>, state: State): Record<string, string> {
  return Object.fromEntries(
    Object.entries(kept).map(([name, valueOf]) => {
      const json = JSON.stringify(valueOf(state));
      return [name, hash('sha256', json, 'base64url').slice(0, DIGEST_CHARACTERS)];
    }),
  );
}
