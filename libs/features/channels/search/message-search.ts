import { join } from 'node:path';

import { type StreamRevision, streamRevision } from '#libs/kernel/event.ts';
import { StreamGone } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { StoredEvent } from '#libs/platform/eventstore/index.ts';
import { FairSemaphore, joinedCall } from '#libs/platform/lifecycle/index.ts';
import type { Core } from '#libs/platform/runtime/index.ts';
import { streamName } from '#libs/platform/streams/index.ts';
import { indexBeingBuilt, IndexQueries, SearchThread } from '#libs/platform/textindex/index.ts';

import { CHANNEL } from '../channel.keys.ts';

import type { KnownChannel } from './message-file.ts';
import type { FoundMessages, MessageQuestion } from './message-index.ts';
import { type MessageChange, messageChange } from './message-text.ts';
import type { MessageTask } from './message.thread.ts';

const SCRIPT = new URL('./message.thread.ts', import.meta.url);
const MAX_OPEN = 64;
const MAX_BYTES = 256 * 1024 * 1024;
/** Channels that are read at a time; organizations take turns. */
const READS = 4;
/** Channels that wait to be read at a time, of one search. */
const CHANNELS = 1_000;
/** Searches that are handed to the thread at a time. */
const SEARCHES = 2;
const MAX_WAITING = 256;
const MAX_WAITING_OF_ORGANIZATION = 64;
/** Events of a channel that are written in one transaction, and their text in UTF-16 code units. */
const PAGE_EVENTS = 500;
const PAGE_SIZE = 500_000;

/** A channel, and the revision of its stream that its read model reflects. */
export type ChannelHead = readonly [id: EntityId, revision: StreamRevision];

/**
 * The index of the messages of each organization: a fold of the streams of its channels, in files of this machine that are
 * brought up to date when they are asked.
 *
 * Guarantees: an answer reflects at least the events up to the heads that it is asked with; of a channel that is read, all
 * events at that time. Nothing of other channels has an effect on it.
 */
export class MessageSearch {
  readonly #store: Core['store'];
  readonly #thread: SearchThread<MessageTask>;
  readonly #reads = new FairSemaphore({ permits: READS });
  readonly #searches = new IndexQueries({
    permits: SEARCHES,
    maxWaiting: MAX_WAITING,
    maxWaitingInGroup: MAX_WAITING_OF_ORGANIZATION,
  });
  /** Channels that are being read. */
  readonly #reading = new Map<EntityId, Promise<void>>();
  readonly #applied: (events: number) => void;

  constructor({
    store,
    log,
    metrics,
    cacheDir,
    closeFirst,
  }: Pick<Core, 'store' | 'log' | 'metrics' | 'cacheDir' | 'closeFirst'>) {
    this.#store = store;
    const options = { folder: join(cacheDir, 'messages'), maxOpen: MAX_OPEN, maxBytes: MAX_BYTES };
    this.#thread = new SearchThread(SCRIPT, options, (error) =>
      log.error({ err: error }, 'the thread of message search has died'),
    );
    const events = metrics.counter(
      'message_search_applied_events_total',
      'Events that indexes of messages were caught up with',
    );
    this.#applied = (count) => events.add({}, count);
    metrics.observedGauge(
      'message_search_index_memory_bytes',
      'Memory of the open indexes of messages',
      () => this.#thread.open.bytes,
    );
    closeFirst.push(() => this.#thread.close());
  }

  /**
   * The messages of the channels that match; null for a query that reads too much.
   *
   * @throws `Fault` `store_unavailable`, `not_caught_up` while the index is being built, `overloaded`
   */
  async search(
    organizationId: EntityId,
    heads: readonly ChannelHead[],
    question: Omit<MessageQuestion, 'channelIds'>,
  ): Promise<FoundMessages | null> {
    const task = { question: { ...question, channelIds: heads.map(([id]) => id) }, organizationId };
    return this.#searches.run(
      organizationId,
      (signal) => this.#catchUp(organizationId, heads, signal),
      () => this.#run<FoundMessages | null>({ kind: 'search', ...task }),
    );
  }

  /** Ends early once the signal aborts: then the channels that are being read are the last ones. */
  async #catchUp(organizationId: EntityId, heads: readonly ChannelHead[], signal: AbortSignal): Promise<void> {
    const revisions = new Map(heads);
    while (!signal.aborted) {
      const stale = await this.#run<(readonly [EntityId, KnownChannel])[]>({ kind: 'stale', organizationId, heads });
      if (stale.length === 0) return;
      const reads = stale.slice(0, CHANNELS);
      await Promise.all(reads.map(([id, known]) => this.#read(organizationId, id, known, revisions.get(id))));
    }
  }

  /** Reads a channel to the end of its stream. Concurrent callers share one read, and look again after it. */
  #read(organizationId: EntityId, id: EntityId, known: KnownChannel, head = streamRevision(0)): Promise<void> {
    const read = () => this.#apply(organizationId, id, known, head);
    return joinedCall(this.#reading, id, () => this.#reads.run(read, { group: organizationId }));
  }

  async #apply(
    organizationId: EntityId,
    channelId: EntityId,
    known: KnownChannel,
    head: StreamRevision,
  ): Promise<void> {
    // Deleted or truncated before, which does not change.
    if (known.revision >= 0 && known.event === '') return this.#forget(organizationId, channelId, head);
    let after = known.revision;
    let last: StoredEvent | null = null;
    let changes: MessageChange[] = [];
    let size = 0;
    const write = async (): Promise<void> => {
      if (last === null || last.revision === after) return;
      const { revision, id: event } = last;
      const page = { channelId, after, revision, event, changes };
      this.#applied(revision - after);
      [after, changes, size] = [revision, [], 0];
      await this.#run({ kind: 'write', organizationId, changes: page });
    };
    try {
      // The last event that the index has comes first: the stream must have the same.
      const from = streamRevision(Math.max(0, known.revision));
      for await (const stored of this.#store.readStream(streamName(CHANNEL, channelId), { from })) {
        if (stored.revision === known.revision) {
          // Built from another log.
          if (stored.id !== known.event) return await this.#run({ kind: 'delete', organizationId });
          continue;
        }
        last = stored;
        const change = messageChange(stored);
        if (change !== null) changes.push(change);
        size += change?.text?.length ?? 0;
        if (stored.revision - after >= PAGE_EVENTS || size >= PAGE_SIZE) await write();
      }
      await write();
      // A node of the event store that lags behind.
      if (after < head) throw indexBeingBuilt();
    } catch (error) {
      if (!(error instanceof StreamGone)) throw error;
      await this.#forget(organizationId, channelId, head);
    }
  }

  /** The stream was deleted or truncated. */
  #forget(organizationId: EntityId, channelId: EntityId, revision: StreamRevision): Promise<void> {
    const changes = { channelId, after: -1, revision, event: '', changes: [], isGone: true };
    return this.#run({ kind: 'write', organizationId, changes });
  }

  async #run<T>(task: MessageTask): Promise<T> {
    return (await this.#thread.run(task)) as T;
  }
}
