/** Readers of feeds, and the checkpoints that a reader of partitions saves. */
import {
  comparePositions,
  type FeedItem,
  type FeedOptions,
  type PartitionCheckpoint,
  type PartitionedFeed,
  type ReadCheckpoints,
  type StoredEvent,
} from '#libs/platform/eventstore/index.ts';
import type { GlobalPosition } from '#libs/kernel/event.ts';
import { eventually } from '#test/support/eventually.ts';

/** Checkpoints of the partitions, over all subscribers of a feed; they never move back. */
export class SavedCheckpoints {
  readonly #checkpoints: Map<string, PartitionCheckpoint>;

  constructor(from: readonly PartitionCheckpoint[]) {
    this.#checkpoints = new Map(from.map((checkpoint) => [checkpoint.partition, checkpoint]));
  }

  get all(): readonly PartitionCheckpoint[] {
    return [...this.#checkpoints.values()];
  }

  get partitions(): readonly string[] {
    return [...this.#checkpoints.keys()].toSorted();
  }

  /** The least position of all partitions. */
  get least(): GlobalPosition {
    const [first, ...rest] = this.all.map(({ position }) => position);
    if (first === undefined) throw new Error('a feed has partitions');
    return rest.reduce((a, b) => (comparePositions(a, b) <= 0 ? a : b), first);
  }

  note(checkpoints: readonly PartitionCheckpoint[]): void {
    for (const { partition, checkpoint, position } of checkpoints) {
      const known = this.#checkpoints.get(partition);
      if (known === undefined) throw new Error(`partition ${partition} did not exist at the start`);
      this.#checkpoints.set(partition, {
        partition,
        checkpoint: numberOf(checkpoint) >= numberOf(known.checkpoint) ? checkpoint : known.checkpoint,
        position: comparePositions(position, known.position) > 0 ? position : known.position,
      });
    }
  }
}

export const numberOf = (checkpoint: string): bigint => BigInt(checkpoint.split(':')[0] ?? '');

/** Reads a feed in the background, and keeps its items. */
export class FeedReader {
  readonly items: FeedItem[] = [];
  readonly #abort = new AbortController();
  readonly #deliveryMs: number;
  readonly #done: Promise<void>;
  #failure: { readonly error: unknown } | undefined;
  #gate: Promise<void> | undefined;
  #open: (() => void) | undefined;

  constructor(
    subscribe: (signal: AbortSignal) => AsyncIterable<FeedItem>,
    deliveryMs: number,
    onItem: (item: FeedItem) => void = () => undefined,
  ) {
    this.#deliveryMs = deliveryMs;
    this.#done = this.#consume(subscribe(this.#abort.signal), onItem);
  }

  get events(): readonly StoredEvent[] {
    return this.items.flatMap((item) => (item.kind === 'events' ? item.events : []));
  }

  /** Requests no further item after the next events. */
  hold(): void {
    this.#gate = new Promise((resolve) => (this.#open = resolve));
  }

  release(): void {
    this.#gate = undefined;
    this.#open?.();
  }

  /** @throws the error of the feed */
  async until(condition: (reader: this) => boolean): Promise<this> {
    await eventually(() => this.#failure !== undefined || condition(this), { timeoutMs: this.#deliveryMs });
    if (this.#failure) throw this.#failure.error;
    return this;
  }

  /** Reads until the feed has caught up, and stops. */
  async untilCaughtUp(): Promise<this> {
    await this.until((one) => one.has('caught-up'));
    await this.stop();
    return this;
  }

  has(kind: FeedItem['kind']): boolean {
    return this.items.some((item) => item.kind === kind);
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#done;
  }

  async #consume(feed: AsyncIterable<FeedItem>, onItem: (item: FeedItem) => void): Promise<void> {
    try {
      for await (const item of feed) {
        this.items.push(item);
        onItem(item);
        if (item.kind === 'events') await this.#gate;
      }
    } catch (error) {
      this.#failure = { error };
    }
  }
}

/** Reads a partitioned feed from saved checkpoints, and saves the checkpoints that it reaches. */
export class Subscriber extends FeedReader {
  constructor(
    feed: PartitionedFeed,
    checkpoints: SavedCheckpoints,
    options: Partial<FeedOptions<ReadCheckpoints>>,
    deliveryMs: number,
  ) {
    super(
      (signal) => feed.subscribe({ streamPrefixes: [], signal, from: async () => checkpoints.all, ...options }),
      deliveryMs,
      (item) => item.kind === 'reached' && checkpoints.note(item.checkpoints),
    );
  }

  /** The names of the partitions of the latest assignment. */
  get partitions(): readonly string[] {
    const last = this.items.findLast((item) => item.kind === 'assigned');
    return (last?.checkpoints ?? []).map(({ partition }) => partition).toSorted();
  }
}
