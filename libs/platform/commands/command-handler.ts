import { LRUCache } from 'lru-cache';

import type { Rejection } from '#libs/kernel/decider.ts';
import type { DomainEvent, StreamEvent, StreamRevision } from '#libs/kernel/event.ts';
import { NO_EVENTS } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import { entityKeys, streamName } from '#libs/platform/readmodel/index.ts';
import type { Lookup, Projection, Projector, ReadModel } from '#libs/platform/readmodel/index.ts';

import type { CommandContext } from './command-context.ts';
import { CommandQueue } from './command-queue.ts';
import { EntityLoader } from './entity-loader.ts';
import type { Tip } from './entity-loader.ts';
import { StoreClock } from './event-times.ts';
import { Lookups } from './lookups.ts';
import { decideBatch } from './decide-batch.ts';
import type { CommandResult, Decide, Decided, Waiting } from './decide-batch.ts';
import { readRecentCommands, RecentCommands, eventsOfCommand } from './repeated-command.ts';

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
  /** Called about once a minute while this process's clock is too far ahead of the event store's; see `StoreClock`. */
  readonly onClockAhead?: (aheadMs: number) => void;
}

const MAX_BATCH = 200;
const ATTEMPTS = 8;
/** Looking up and bringing up to date, while others throw the read models away. */
const LOOKUP_ATTEMPTS = 4;
/** Idempotency keys that the cached entities may hold together: about 25 MB. */
const MAX_CACHED_COMMANDS = 250_000;

/** What is kept of an entity between commands; `recent` once a command with an idempotency key has come. */
interface Cached<State> {
  readonly tip: Tip<State>;
  readonly recent: RecentCommands | undefined;
}

/**
 * Runs the commands of one category: load, decide, append at the exact revision, apply, answer.
 *
 * Guarantees: commands of one entity that wait in this process are decided one after another on the same
 * state and appended as one batch; against other processes the expected revision decides, and the loser
 * reads what it missed and decides again. A command that appends nothing, or is refused, was decided on
 * the true end of the stream, not on a cached state. What a caller is told of was acknowledged as durable.
 *
 * A command that may have run before (`repeatedSinceMs`), or whose events are among the newest of the
 * stream, leaves its events once, and is answered with the state as it is now.
 *
 * Omissions: no authorization; no memory of answers. A command that is repeated when Redis has forgotten
 * its key, and its events are no longer among the newest, runs again.
 */
export class CommandHandler<State, E extends DomainEvent> {
  readonly #projection: Projection<State, E>;
  readonly #stores: CommandStores;
  readonly #onApplyFailure: (error: unknown) => void;
  readonly #loader: EntityLoader<State, E>;
  readonly #cache: LRUCache<string, Cached<State>>;
  readonly #queue: CommandQueue<Waiting<State, E>>;
  readonly #clock: StoreClock;

  constructor(projection: Projection<State, E>, stores: CommandStores, options: CommandHandlerOptions = {}) {
    this.#projection = projection;
    this.#stores = stores;
    this.#onApplyFailure = options.onApplyFailure ?? (() => undefined);
    this.#loader = new EntityLoader(projection, stores, this.#onApplyFailure);
    this.#clock = new StoreClock(stores.store, options.onClockAhead ?? (() => undefined));
    this.#cache = new LRUCache({
      max: options.cachedEntities ?? 5_000,
      maxSize: MAX_CACHED_COMMANDS,
      sizeCalculation: ({ recent }) => 1 + (recent?.size ?? 0),
    });
    this.#queue = new CommandQueue((_queue, waiting) => this.#runBatch(waiting), {
      maxWaiting: options.maxWaiting ?? 1_000,
      maxBatch: MAX_BATCH,
    });
  }

  /**
   * @param lookups what `decide` needs to know besides the state: fields of the entity's own hashes
   * @throws `Fault`: `store_unavailable` (nothing was written), `outcome_unknown` (perhaps written; the same
   * command may be sent again), `overloaded`, `conflict` (other writers won every attempt)
   */
  handle<R extends Rejection>(
    id: EntityId,
    context: CommandContext,
    decide: Decide<State, E, R>,
    lookups: readonly Lookup[] = [],
  ): Promise<CommandResult<State, E, R>> {
    return new Promise((resolve, reject) => {
      // Per organization: what a batch looks up is one organization's, and a foreign caller waits alone.
      this.#queue.add(`${context.organizationId} ${id}`, {
        id,
        context,
        decide,
        lookups,
        resolve: (result) => {
          context.onDecided?.();
          // A caller gets back only what its own `decide` gave, so its rejections are of its own type.
          resolve(result as CommandResult<State, E, R>);
        },
        reject,
      });
    });
  }

  async #runBatch(batch: readonly Waiting<State, E>[]): Promise<readonly Waiting<State, E>[]> {
    const [head] = batch;
    if (head === undefined) return [];
    const { id } = head;
    // 1. Load: from memory, else the read model's snapshot and the tail of the stream.
    const cached = this.#cache.get(id);
    let current = cached?.tip ?? (await this.#loader.load(id, head.context.organizationId));
    // After the state: whatever is in that must be known here, too.
    const recent = cached?.recent ?? (batch.some(canBeRepeated) ? await this.#recentCommands(id, current) : undefined);
    let atEnd = cached === undefined;
    // Until the outcome is known, nobody else is to decide on what may be out of date.
    this.#cache.delete(id);

    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      // 2. Repeated commands go their own, slower way, one by one.
      const repeated = batch.findIndex(({ context }) => isRepeated(context, recent));
      if (repeated === 0) return this.#runRepeated(head, batch.slice(1));

      // 3. Decide, each command on the state that the one before it leaves.
      const now = repeated < 0 ? batch : batch.slice(0, repeated);
      const decided = this.#decide(current, now, await this.#lookUp(current, now));

      // 4. Nothing to append is an answer only at the true end of the stream.
      if (decided.events.length === 0 && !atEnd) {
        const end = await this.#loader.readTail(id, current, recent);
        atEnd = true;
        if (end.revision !== current.revision) {
          current = end;
          continue;
        }
      }

      // 5. Append at exactly the revision that was decided on; on a conflict, catch up and decide again.
      if (!(await this.#append(id, current.revision, decided.events))) {
        current = await this.#loader.readTail(id, current, recent);
        atEnd = true;
        continue;
      }

      // 6. Apply to the read model, so that callers can read what they wrote; then answer.
      await this.#apply(id, current, decided);
      for (const { metadata } of decided.events) recent?.note(metadata);
      this.#cache.set(id, { tip: decided.after, recent });
      for (const answer of decided.answers) answer();
      return [...decided.rest, ...batch.slice(now.length)];
    }
    throw tooManyConflicts();
  }

  /**
   * A command that an earlier request may have run: if its events are in the stream, it is done, whatever
   * has happened since. If not, they may still be on their way, and be faster than what is appended here; so
   * what counts is what is read back, not what was decided.
   */
  async #runRepeated(
    waiting: Waiting<State, E>,
    rest: readonly Waiting<State, E>[],
  ): Promise<readonly Waiting<State, E>[]> {
    const { id, context } = waiting;
    const { organizationId, commandId, repeatedSinceMs = 0 } = context;
    const stream = streamName(this.#projection.category, id);
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      let own = await eventsOfCommand(this.#stores.store, stream, { commandId, repeatedSinceMs });
      const isRepeated = own.length > 0;
      const current = await this.#loader.load(id, organizationId);
      if (!isRepeated) {
        const lookups = await this.#lookUp(current, [waiting]);
        const decided = this.#decide(current, [waiting], lookups);
        // After a conflict, the first request may turn out to have been faster.
        if (!(await this.#append(id, current.revision, decided.events))) continue;
        if (decided.events.length === 0) {
          for (const answer of decided.answers) answer();
          return rest;
        }
      }
      const end = await this.#loader.readTail(id, current);
      await this.#catchUp(id, organizationId);
      if (own.length === 0) own = await eventsOfCommand(this.#stores.store, stream, { commandId, repeatedSinceMs });
      const events = own.map((stored) => this.#projection.codec.decode(stored)).filter((event) => event !== null);
      waiting.resolve({ ok: true, ...end, events, isRepeated });
      return rest;
    }
    throw tooManyConflicts();
  }

  #decide(current: Tip<State>, batch: readonly Waiting<State, E>[], lookups: Lookups): Decided<State, E> {
    return decideBatch(this.#projection, current, batch, lookups, ({ at }) => this.#clock.corrected(at));
  }

  /**
   * Reads what the commands of a batch have to know besides the state, as of `current` or later; if later,
   * the append will meet a conflict. Commands that need it fail alone while Redis is away.
   */
  async #lookUp(current: Tip<State>, batch: readonly Waiting<State, E>[]): Promise<Lookups> {
    const wanted = batch.flatMap(({ lookups }) => lookups);
    const [head] = batch;
    if (wanted.length === 0 || head === undefined) return new Lookups();
    const { id, context } = head;
    const { category } = this.#projection;
    const { revision } = entityKeys(this.#projection, context.organizationId, id);
    const { readModel, projector } = this.#stores;
    try {
      for (let attempt = 0; attempt < LOOKUP_ATTEMPTS; attempt++) {
        const found = await readModel.lookUp(revision, wanted);
        const isOld = found.revision < current.revision;
        // Nothing is there of what is another organization's: that is how it is refused.
        const isOwn = isOld && (await projector.catchUp(category, context.organizationId, id));
        if (!isOwn) return new Lookups(wanted, found.values);
      }
      throw new Fault('not_caught_up', 'The read models are being built', { retryAfterSeconds: 2 });
    } catch (error) {
      return new Lookups([], [], error);
    }
  }

  async #recentCommands(id: EntityId, { revision }: Tip<State>): Promise<RecentCommands> {
    if (revision === NO_EVENTS) return new RecentCommands();
    return readRecentCommands(this.#stores.store, streamName(this.#projection.category, id));
  }

  /** @returns false on a conflict */
  async #append(id: EntityId, expected: StreamRevision, events: readonly StreamEvent<E>[]): Promise<boolean> {
    const [first] = events;
    if (first === undefined) return true;
    const stream = streamName(this.#projection.category, id);
    const sentAtMs = Date.now();
    try {
      if ((await this.#stores.store.append(stream, expected, events)).kind === 'conflict') return false;
      void this.#clock.measure(stream, first, sentAtMs);
      return true;
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
      await this.#stores.projector.catchUp(this.#projection.category, organizationId, id);
    } catch (error) {
      this.#onApplyFailure(error);
    }
  }
}

function canBeRepeated({ context }: { readonly context: CommandContext }): boolean {
  return context.idempotencyKey !== undefined;
}

/** Redis says that an earlier request took its key, or its events have been seen. */
function isRepeated({ repeatedSinceMs, commandId }: CommandContext, recent: RecentCommands | undefined): boolean {
  return repeatedSinceMs !== undefined || recent?.has(commandId) === true;
}

function tooManyConflicts(): Fault {
  return new Fault('conflict', 'Other writers changed this at the same time, again and again; try once more');
}
