import type { Rejection } from '#libs/kernel/decider.ts';
import { NO_EVENTS, type DomainEvent, type StreamRevision } from '#libs/kernel/event.ts';
import { Fault, storeUnavailable } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { Projection } from '#libs/platform/readmodel/index.ts';
import { emptyTip, streamName, type Tip, TipCache } from '#libs/platform/streams/index.ts';

import { OrderedBatches } from './ordered-batches.ts';
import type { CommandContext, CommandHandlerOptions, CommandStores } from './command-context.ts';
import { CommandQueue } from './command-queue.ts';
import { EntityStream } from './entity-stream.ts';
import { LookupReader } from './lookup-reader.ts';
import { Lookups } from './lookups.ts';
import {
  decideBatch,
  matching,
  type CommandResult,
  type Decide,
  type Decided,
  type NeededLookups,
  type Waiting,
} from './decide-batch.ts';
import { untilSettled } from './until-settled.ts';
import { eventsOfCommand, isRepeated, isUnknown, readRecentCommands, RecentCommands } from './repeated-command.ts';

/** An entity between commands; `recent` is set once a command has had an idempotency key. */
interface Cached<State> {
  readonly tip: Tip<State>;
  readonly recent: RecentCommands | undefined;
}

/** The tip that a batch is decided on. */
interface Taken<State> {
  tip: Tip<State>;
  readonly recent: RecentCommands | undefined;
  /** As it was kept; undefined if it was read. */
  readonly cached: Cached<State> | undefined;
  /** Whether the tip was at the end of the stream when the batch began, or later. */
  isAtEnd: boolean;
}

/**
 * Runs the commands of one category: load, decide, append at the exact revision, apply, answer.
 *
 * Guarantees: commands of one entity that wait in this process are decided one after another on the same state and
 * appended as one batch, while the batch before it is applied to the read model. Appends of other processes are detected
 * by the expected revision: on a conflict the handler reads the events that it missed and decides again. A command that
 * appends nothing, or is rejected, was decided on the end of the stream, not on a cached state (but see `seenRevision`).
 * Results are returned in the order of the decisions, after the store has acknowledged the events as durable and after
 * they were applied, unless that failed. Times of events do not go back in a stream.
 *
 * A command that may have run before (`repeatedSinceMs`), or whose events are among the newest of the stream, is not
 * appended twice, and returns the current state.
 *
 * Omissions: no authorization; results are not stored. A command runs again if it is repeated after its key has expired in
 * Redis and its events are no longer among the newest of the stream.
 */
export class CommandHandler<State, E extends DomainEvent> {
  readonly #projection: Projection<State, E>;
  readonly #stores: CommandStores;
  readonly #revisionOf: (state: State) => StreamRevision | null;
  readonly #stream: EntityStream<State, E>;
  readonly #cache: TipCache;
  readonly #queue: CommandQueue<Waiting<State, E>>;
  readonly #applied = new OrderedBatches();
  readonly #lookups: LookupReader;
  /** By stream, while a batch has taken it: the tip that the batch is decided on, and the tip after its append. */
  readonly #taken = new Map<string, readonly Tip<State>[]>();

  /**
   * @param revisionOf revision of the event that last changed the entity, which `ifMatch` names; null for a missing
   *   entity, which no condition matches
   */
  constructor(
    projection: Projection<State, E>,
    stores: CommandStores,
    revisionOf: (state: State) => StreamRevision | null,
    options: CommandHandlerOptions = {},
  ) {
    this.#projection = projection;
    this.#stores = stores;
    this.#revisionOf = revisionOf;
    this.#stream = new EntityStream(projection, stores, options);
    this.#lookups = new LookupReader(projection, stores);
    this.#cache = options.cache ?? new TipCache();
    this.#queue = new CommandQueue((waiting) => this.#runBatch(waiting));
  }

  /**
   * @param lookups values that `decide` needs besides the state: fields and counts of the entity's own keys
   * @throws `Fault`: `store_unavailable` (nothing was written), `outcome_unknown` (perhaps written; the same
   * command may be sent again), `overloaded`, `conflict` (other writers won every attempt), `precondition_failed`
   */
  handle<R extends Rejection>(
    id: EntityId,
    context: CommandContext,
    decide: Decide<State, E, R>,
    lookups: NeededLookups<State> = [],
  ): Promise<CommandResult<State, E, R>> {
    return new Promise((resolve, reject) => {
      // Per organization: the keys of look-ups name it, so one batch reads the keys of one organization.
      this.#queue.add(`${context.organizationId} ${id}`, {
        id,
        context,
        decide: matching(context, decide, this.#revisionOf),
        lookups,
        resolve: (result) => {
          context.onDecided?.();
          // The result comes from the caller's own `decide`, so its rejections are of its type.
          resolve(result as CommandResult<State, E, R>);
        },
        reject,
      });
    });
  }

  /**
   * Whether this process knows that `holds` for the entity at `revision` or later, and after the append that is on its
   * way, if there is one. Reads nothing: false for an entity that no command has changed here lately.
   */
  isKnown(id: EntityId, revision: StreamRevision, holds: (state: State) => boolean): boolean {
    const stream = streamName(this.#projection.category, id);
    // A handler puts only entities of its own category.
    const cached = this.#cache.get(stream) as Cached<State> | undefined;
    const tips = cached === undefined ? (this.#taken.get(stream) ?? []) : [cached.tip];
    const [known] = tips;
    return known !== undefined && known.revision >= revision && tips.every(({ state }) => holds(state));
  }

  async #runBatch(waiting: readonly Waiting<State, E>[]): Promise<readonly Waiting<State, E>[]> {
    const [head] = waiting;
    if (head === undefined) return [];
    const stream = streamName(this.#projection.category, head.id);
    const size = this.#applied.sizeOf(stream, waiting.length);
    const [batch, later] = [waiting.slice(0, size), waiting.slice(size)];
    try {
      return [...(await this.#runTaken(stream, head, batch)), ...later];
    } finally {
      this.#taken.delete(stream);
    }
  }

  /** @returns the commands of the batch that are still to be run */
  async #runTaken(stream: string, head: Waiting<State, E>, batch: readonly Waiting<State, E>[]) {
    // 1. Take the tip of the stream.
    const taken = await this.#take(stream, batch, head);

    return untilSettled(tooManyConflicts, async () => {
      const { tip, recent } = taken;
      // 2. Commands that may have run before are run one by one, or wait for Redis if the log is too long to be searched.
      const repeated = batch.findIndex(({ context }) => isRepeated(context, recent) || isUnknown(context, recent));
      if (repeated === 0 && isRepeated(head.context, recent)) return this.#runRepeated(head, batch.slice(1));
      if (repeated === 0) {
        this.#cache.put(stream, { tip, recent, otherBytes: recent?.bytes }, null);
        head.reject(storeUnavailable('Redis'));
        return batch.slice(1);
      }

      // 3. Decide, each command on the state after the previous one.
      const now = repeated < 0 ? batch : batch.slice(0, repeated);
      const decided = this.#decide(tip, now, await this.#lookUp(tip, now, recent));

      // 4. Without events, the result is final only if it was decided on the end of the stream, or late enough.
      const isFinal = decided.events.length > 0 || taken.isAtEnd || now.every(({ context }) => hasSeen(tip, context));
      if (!isFinal && (await this.#readOn(head.id, taken))) return undefined;

      // 5. Append at the revision that was decided on, apply, settle; on a conflict, read on and decide again.
      if (await this.#append(stream, head.id, taken, decided)) {
        return [...decided.rest, ...batch.slice(now.length)];
      }
      await this.#readOn(head.id, taken);
      return undefined;
    });
  }

  /**
   * The tip from memory, else from the read model's snapshot and the tail of the stream, unless there is none. Other batches
   * must not decide on it before the outcome is known.
   */
  async #take(stream: string, batch: readonly Waiting<State, E>[], head: Waiting<State, E>): Promise<Taken<State>> {
    // A handler puts only entities of its own category.
    const cached = this.#cache.take(stream) as Cached<State> | undefined;
    const isRead = cached === undefined && head.context.isNew !== true;
    let tip = cached?.tip ?? emptyTip(this.#projection);
    this.#taken.set(stream, [tip]);
    if (isRead) tip = await this.#stream.load(head.id, head.context.organizationId);
    // After the state, so that it includes every command that the state includes.
    const recent = await this.#recentFor(batch, tip, cached?.recent);
    return { tip, recent, cached, isAtEnd: isRead };
  }

  /** Brings a tip to the end of its stream. @returns whether there was more */
  async #readOn(id: EntityId, taken: Taken<State>): Promise<boolean> {
    const { tip, recent } = taken;
    taken.isAtEnd = true;
    taken.tip = await this.#stream.readTail(id, tip, recent);
    return taken.tip.revision !== tip.revision;
  }

  /** Resolves once the batch before it is applied. @returns false on a conflict */
  async #append(
    stream: string,
    id: EntityId,
    { tip, recent, cached }: Taken<State>,
    decided: Decided<State, E>,
  ): Promise<boolean> {
    this.#taken.set(stream, [tip, decided.after]);
    const startMs = performance.now();
    const apply = await this.#stream.append(id, tip, decided);
    const appendMs = performance.now() - startMs;
    if (apply === null) return false;
    const { after, events, bytes, answers } = decided;
    for (const event of events) recent?.note(event);
    const growth = cached !== undefined && tip === cached.tip ? { from: cached, bytes } : null;
    this.#cache.put(stream, { tip: after, recent, otherBytes: recent?.bytes }, growth);
    // Callers can read their own writes.
    await this.#applied.add(stream, { apply, answers, appendMs });
    return true;
  }

  /**
   * Runs a command that an earlier request may have run. If its events are in the stream, it succeeds, whatever was
   * appended since. If not, the earlier request may still append them before this one does, so the result is read back
   * from the stream, not taken from the decision.
   */
  async #runRepeated(
    waiting: Waiting<State, E>,
    rest: readonly Waiting<State, E>[],
  ): Promise<readonly Waiting<State, E>[]> {
    const { id, context } = waiting;
    const { organizationId } = context;
    const stream = streamName(this.#projection.category, id);
    // Results are returned in the order of the commands.
    await this.#applied.pending(stream);
    return untilSettled(tooManyConflicts, async () => {
      let own = await eventsOfCommand(this.#stores.store, stream, context);
      const isRepeated = own.length > 0;
      const current = await this.#stream.load(id, organizationId);
      if (!isRepeated) {
        const lookups = await this.#lookUp(current, [waiting]);
        const decided = this.#decide(current, [waiting], lookups);
        // A conflict may be the earlier request's append.
        if ((await this.#stream.append(id, current, decided)) === null) return undefined;
        if (decided.events.length === 0) {
          for (const answer of decided.answers) answer(Promise.resolve());
          return rest;
        }
      }
      const end = await this.#stream.readTail(id, current);
      await this.#stream.catchUp(id, organizationId);
      // Those of this request are at the end, whatever the position of the earlier one.
      if (!isRepeated)
        own = await eventsOfCommand(this.#stores.store, stream, { ...context, repeatedPosition: undefined });
      const events = own.map((stored) => this.#projection.codec.decode(stored)).filter((event) => event !== null);
      waiting.resolve({ ok: true, state: end.state, revision: end.revision, events, isRepeated });
      return rest;
    });
  }

  #decide(current: Tip<State>, batch: readonly Waiting<State, E>[], lookups: Lookups): Decided<State, E> {
    return decideBatch(this.#projection, current, batch, lookups, ({ at }) => this.#stores.clock.corrected(at));
  }

  #lookUp(
    { state, revision }: Tip<State>,
    batch: readonly Waiting<State, E>[],
    recent?: RecentCommands,
  ): Promise<Lookups> {
    const [head] = batch;
    const wanted = batch.flatMap(({ lookups }) => (typeof lookups === 'function' ? lookups(state) : lookups));
    if (wanted.length === 0 || head === undefined) return Promise.resolve(new Lookups());
    const { id, context } = head;
    const applying = () => this.#applied.pending(streamName(this.#projection.category, id));
    return this.#lookups.read({ id, organizationId: context.organizationId }, wanted, { revision, recent, applying });
  }

  /** The commands of the stream that a batch may repeat; undefined if it has no command that can be repeated. */
  async #recentFor(
    batch: readonly Waiting<State, E>[],
    { revision }: Tip<State>,
    cached: RecentCommands | undefined,
  ): Promise<RecentCommands | undefined> {
    const isDeep = batch.some(({ context }) => context.unknownSinceMs !== undefined);
    const [head] = batch;
    if (head === undefined || (cached !== undefined && (cached.isDeep || !isDeep))) return cached;
    if (!batch.some(canBeRepeated)) return cached;
    if (revision === NO_EVENTS) return new RecentCommands(NO_EVENTS, isDeep ? -Infinity : Infinity);
    return readRecentCommands(this.#stores.store, streamName(this.#projection.category, head.id), { isDeep });
  }
}

function canBeRepeated({ context }: { readonly context: CommandContext }): boolean {
  return context.idempotencyKey !== undefined;
}

function hasSeen({ revision }: Pick<Tip<unknown>, 'revision'>, { seenRevision }: CommandContext): boolean {
  return seenRevision !== undefined && seenRevision <= revision;
}

function tooManyConflicts(): Fault {
  return new Fault('conflict', 'Other writers changed this at the same time, again and again; try once more');
}
