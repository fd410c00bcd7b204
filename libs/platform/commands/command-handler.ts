import { LRUCache } from 'lru-cache';

import type { Decision, Rejection } from '#libs/kernel/decider.ts';
import { foldEvents } from '#libs/kernel/decider.ts';
import type { DomainEvent, StreamEvent, StreamRevision } from '#libs/kernel/event.ts';
import { NO_EVENTS, streamRevision } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { eventIdOf } from '#libs/kernel/ids.ts';
import { encodeMetadata } from '#libs/platform/eventstore/index.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import { streamName } from '#libs/platform/readmodel/projection.ts';
import type { Projection } from '#libs/platform/readmodel/projection.ts';
import type { Projector } from '#libs/platform/readmodel/projector.ts';
import { entityKeys } from '#libs/platform/readmodel/read-model.keys.ts';
import type { ReadModel } from '#libs/platform/readmodel/read-model.ts';

import type { CommandContext } from './command-context.ts';
import { metadataOf } from './command-context.ts';
import { CommandQueue } from './command-queue.ts';
import { wasAppended } from './repeated-command.ts';

/** What became of a command: the state right after it, at the revision that it left the stream at. */
export type CommandResult<State, R extends Rejection> =
  | { readonly ok: true; readonly state: State; readonly revision: StreamRevision }
  | { readonly ok: false; readonly rejection: R };

export type Decide<State, E extends DomainEvent, R extends Rejection> = (state: State) => Decision<E, R>;

/** The stores that commands run on. */
export interface CommandStores {
  readonly store: EventStore;
  readonly readModel: ReadModel;
  readonly projector: Projector;
}

export interface CommandHandlerOptions {
  /** Entities whose state is kept in memory. Default 5,000. */
  readonly cachedEntities?: number;
  /** Commands that may wait for one entity before the next is refused as `overloaded`. Default 1,000. */
  readonly maxWaiting?: number;
  /** Told when the read model could not be written; the command has succeeded all the same. */
  readonly onApplyFailure?: (error: unknown) => void;
}

interface Tip<State> {
  readonly state: State;
  readonly revision: StreamRevision;
}

interface Waiting<State, E extends DomainEvent> {
  readonly context: CommandContext;
  readonly decide: Decide<State, E, Rejection>;
  resolve(result: CommandResult<State, Rejection>): void;
  reject(error: unknown): void;
}

interface Decided<State, E extends DomainEvent> {
  readonly answers: readonly (() => void)[];
  readonly events: readonly StreamEvent<E>[];
  readonly after: Tip<State>;
  readonly rest: readonly Waiting<State, E>[];
}

const MAX_BATCH = 200;
/** One append may hold 1 MiB; the rest of it is left for metadata and framing. */
const MAX_BATCH_BYTES = 700_000;
const ATTEMPTS = 8;

/**
 * Runs the commands of one noun: load, decide, append at the exact revision, apply, answer.
 *
 * Guarantees: commands of one entity that wait in this process are decided one after another on the same
 * state and appended as one batch; against other processes the expected revision decides, and the loser
 * reads what it missed and decides again. A command that appends nothing, or is refused, was decided on
 * the true end of the stream, not on a cached state. What a caller is told of was acknowledged as durable.
 *
 * A command that may have run before (`repeatedSinceMs`) leaves its events once, and is answered with the
 * state as it is now.
 *
 * Omissions: no authorization; no memory of answers, nor of commands: without `repeatedSinceMs`, a command
 * whose id is repeated runs again.
 */
export class CommandHandler<State, E extends DomainEvent> {
  readonly #projection: Projection<State, E>;
  readonly #stores: CommandStores;
  readonly #onApplyFailure: (error: unknown) => void;
  readonly #cache: LRUCache<string, Tip<State>>;
  readonly #queue: CommandQueue<Waiting<State, E>>;

  constructor(projection: Projection<State, E>, stores: CommandStores, options: CommandHandlerOptions = {}) {
    this.#projection = projection;
    this.#stores = stores;
    this.#onApplyFailure = options.onApplyFailure ?? (() => undefined);
    this.#cache = new LRUCache({ max: options.cachedEntities ?? 5_000 });
    this.#queue = new CommandQueue((id, waiting) => this.#runBatch(id, waiting), {
      maxWaiting: options.maxWaiting ?? 1_000,
      maxBatch: MAX_BATCH,
    });
  }

  /**
   * @throws `Fault`: `store_unavailable` (nothing was written), `outcome_unknown` (perhaps written; the same
   * command may be sent again), `overloaded`, `conflict` (other writers won every attempt)
   */
  handle<R extends Rejection>(
    id: EntityId,
    context: CommandContext,
    decide: Decide<State, E, R>,
  ): Promise<CommandResult<State, R>> {
    return new Promise((resolve, reject) => {
      this.#queue.add(id, {
        context,
        decide,
        // A caller gets back only what its own `decide` gave, so its rejections are of its own type.
        resolve: resolve as Waiting<State, E>['resolve'],
        reject,
      });
    });
  }

  async #runBatch(id: EntityId, batch: readonly Waiting<State, E>[]): Promise<readonly Waiting<State, E>[]> {
    const [head] = batch;
    if (head === undefined) return [];
    // Repeated commands go their own, slower way, one by one.
    const repeated = batch.findIndex(isRepeated);
    if (repeated === 0) return this.#runRepeated(id, head, batch.slice(1));
    if (repeated > 0) return [...(await this.#runBatch(id, batch.slice(0, repeated))), ...batch.slice(repeated)];

    // 1. Load: from memory, else the read model's snapshot and the tail of the stream.
    const cached = this.#cache.get(id);
    let atEnd = cached === undefined;
    let current = cached ?? (await this.#load(id, head.context.organizationId));
    // Until the outcome is known, nobody else is to decide on what may be out of date.
    this.#cache.delete(id);

    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      // 2. Decide, each command on the state that the one before it leaves.
      const decided = this.#decideAll(current, batch);

      // 3. Nothing to append is an answer only at the true end of the stream.
      if (decided.events.length === 0 && !atEnd) {
        const end = await this.#readTail(id, current);
        atEnd = true;
        if (end.revision !== current.revision) {
          current = end;
          continue;
        }
      }

      // 4. Append at exactly the revision that was decided on; on a conflict, catch up and decide again.
      if (!(await this.#append(id, current.revision, decided.events))) {
        current = await this.#readTail(id, current);
        atEnd = true;
        continue;
      }

      // 5. Apply to the read model, so that callers can read what they wrote; then answer.
      await this.#apply(id, current, decided);
      this.#cache.set(id, decided.after);
      for (const answer of decided.answers) answer();
      return decided.rest;
    }
    throw tooManyConflicts();
  }

  /**
   * A command that an earlier request may have run: if its events are in the stream, it is done, whatever
   * has happened since. If not, they may still be on their way, and take the place of those that are
   * appended here under the same ids; so what counts is what is read back, not what was decided.
   */
  async #runRepeated(
    id: EntityId,
    waiting: Waiting<State, E>,
    rest: readonly Waiting<State, E>[],
  ): Promise<readonly Waiting<State, E>[]> {
    const { organizationId, commandId, repeatedSinceMs = 0 } = waiting.context;
    const stream = streamName(this.#projection.noun, id);
    this.#cache.delete(id);
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const isDone = await wasAppended(this.#stores.store, stream, { commandId, repeatedSinceMs });
      const current = await this.#load(id, organizationId);
      if (!isDone) {
        const decided = this.#decideAll(current, [waiting]);
        // After a conflict, the first request may turn out to have been faster.
        if (!(await this.#append(id, current.revision, decided.events))) continue;
        if (decided.events.length === 0) {
          for (const answer of decided.answers) answer();
          return rest;
        }
      }
      const end = await this.#readTail(id, current);
      await this.#catchUp(id, organizationId);
      this.#cache.set(id, end);
      waiting.resolve({ ok: true, ...end });
      return rest;
    }
    throw tooManyConflicts();
  }

  #decideAll(start: Tip<State>, batch: readonly Waiting<State, E>[]): Decided<State, E> {
    const answers: (() => void)[] = [];
    const events: StreamEvent<E>[] = [];
    let tip = start;
    let bytes = 0;
    for (const [index, waiting] of batch.entries()) {
      const before = tip;
      try {
        const decision = waiting.decide(before.state);
        if (!decision.ok) {
          answers.push(() => waiting.resolve(decision));
          continue;
        }
        const own = this.#asStreamEvents(decision.events, waiting.context, before.revision);
        bytes += JSON.stringify(own).length;
        if (index > 0 && own.length > 0 && bytes > MAX_BATCH_BYTES) {
          return { answers, events, after: before, rest: batch.slice(index) };
        }
        events.push(...own);
        const after = {
          state: foldEvents(this.#projection.fold, before.state, own),
          revision: streamRevision(before.revision + own.length),
        };
        tip = after;
        answers.push(() => waiting.resolve({ ok: true, ...after }));
      } catch (error) {
        answers.push(() => waiting.reject(error));
      }
    }
    return { answers, events, after: tip, rest: [] };
  }

  #asStreamEvents(decided: readonly E[], context: CommandContext, after: StreamRevision): StreamEvent<E>[] {
    const metadata = encodeMetadata(metadataOf(context));
    return decided.map((event, index) => ({
      ...event,
      data: this.#projection.codec.encode(event),
      id: eventIdOf(context.commandId, index),
      revision: streamRevision(after + 1 + index),
      metadata,
    }));
  }

  /** @returns false on a conflict */
  async #append(id: EntityId, expected: StreamRevision, events: readonly StreamEvent<E>[]): Promise<boolean> {
    if (events.length === 0) return true;
    const stream = streamName(this.#projection.noun, id);
    try {
      return (await this.#stores.store.append(stream, expected, events)).kind === 'appended';
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== 'outcome_unknown') throw error;
      return this.#appendAgain(stream, expected, events, error);
    }
  }

  /** The same ids at the same expected revision: if the first try got through, the store says so again. */
  async #appendAgain(
    stream: string,
    expected: StreamRevision,
    events: readonly StreamEvent<E>[],
    unknown: Fault,
  ): Promise<boolean> {
    try {
      return (await this.#stores.store.append(stream, expected, events)).kind === 'appended';
    } catch (error) {
      // Whatever kept this try from being made, what became of the first one is still not known.
      throw error instanceof Fault ? unknown : error;
    }
  }

  async #apply(id: EntityId, before: Tip<State>, decided: Decided<State, E>): Promise<void> {
    const [first, ...later] = decided.events;
    if (first === undefined) return;
    const run = {
      organizationId: first.metadata.organizationId,
      id,
      before: before.state,
      after: decided.after.state,
      events: [first, ...later] as const,
    };
    try {
      await this.#stores.projector.applyAppended(this.#projection, run);
    } catch (error) {
      // The log has it: the projector brings it to the read model, and a read can wait for the position.
      this.#onApplyFailure(error);
    }
  }

  async #catchUp(id: EntityId, organizationId: EntityId): Promise<void> {
    try {
      await this.#stores.projector.catchUp(this.#projection.noun, organizationId, id);
    } catch (error) {
      this.#onApplyFailure(error);
    }
  }

  async #load(id: EntityId, organizationId: EntityId): Promise<Tip<State>> {
    const keys = entityKeys(this.#projection.noun, organizationId, id);
    let start: Tip<State> = { state: this.#projection.fold.initialState, revision: NO_EVENTS };
    try {
      const [snapshot] = await this.#stores.readModel.snapshots([keys]);
      // The snapshot was made by this very fold, in a key that carries the version of its shape.
      if (snapshot) start = { state: snapshot.state as State, revision: snapshot.revision };
    } catch (error) {
      // Without Redis the whole stream is folded: slower, and just as right.
      this.#onApplyFailure(error);
    }
    return this.#readTail(id, start);
  }

  async #readTail(id: EntityId, from: Tip<State>): Promise<Tip<State>> {
    let { state, revision } = from;
    const stream = streamName(this.#projection.noun, id);
    for await (const stored of this.#stores.store.readStream(stream, { from: streamRevision(revision + 1) })) {
      const event = this.#projection.codec.decode(stored);
      if (event !== null) state = this.#projection.fold.evolve(state, event);
      revision = stored.revision;
    }
    return { state, revision };
  }
}

function isRepeated({ context }: { readonly context: CommandContext }): boolean {
  return context.repeatedSinceMs !== undefined;
}

function tooManyConflicts(): Fault {
  return new Fault('conflict', 'Other writers changed this at the same time, again and again; try once more');
}
