/** A subscriber of a partitioned feed, and the checkpoints that it saves. */
import { comparePositions } from '#libs/platform/eventstore/index.ts';
import type {
  PartitionedFeed,
  FeedItem,
  FeedOptions,
  ReadCheckpoints,
  PartitionCheckpoint,
  StoredEvent,
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

  /** Of all partitions. */
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

/** Consumes a feed in the background, keeps what it got, and notes how far that has brought the partitions. */
export class Subscriber {
  readonly items: FeedItem[] = [];
  readonly #checkpoints: SavedCheckpoints;
  readonly #abort = new AbortController();
  readonly #deliveryMs: number;
  readonly #done: Promise<void>;
  #failure: { readonly error: unknown } | undefined;
  #gate: Promise<void> | undefined;
  #open: (() => void) | undefined;

  constructor(
    feed: PartitionedFeed,
    checkpoints: SavedCheckpoints,
    options: Partial<FeedOptions<ReadCheckpoints>>,
    deliveryMs: number,
  ) {
    this.#checkpoints = checkpoints;
    this.#deliveryMs = deliveryMs;
    const { signal } = this.#abort;
    this.#done = this.#consume(
      feed.subscribe({ streamPrefixes: [], signal, from: async () => this.#checkpoints.all, ...options }),
    );
  }

  get events(): readonly StoredEvent[] {
    return this.items.flatMap((item) => (item.kind === 'events' ? item.events : []));
  }

  /** Those that it was given last, by name. */
  get partitions(): readonly string[] {
    const last = this.items.findLast((item) => item.kind === 'assigned');
    return (last?.checkpoints ?? []).map(({ partition }) => partition).toSorted();
  }

  /** After the next events, nothing more is asked for. */
  hold(): void {
    this.#gate = new Promise((resolve) => (this.#open = resolve));
  }

  release(): void {
    this.#gate = undefined;
    this.#open?.();
  }

  /** @throws whatever the feed has thrown */
  async until(condition: (subscriber: this) => boolean): Promise<this> {
    await eventually(() => this.#failure !== undefined || condition(this), { timeoutMs: this.#deliveryMs });
    if (this.#failure) throw this.#failure.error;
    return this;
  }

  has(kind: FeedItem['kind']): boolean {
    return this.items.some((item) => item.kind === kind);
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#done;
  }

  async #consume(feed: AsyncIterable<FeedItem>): Promise<void> {
    try {
      for await (const item of feed) {
        this.items.push(item);
        if (item.kind === 'reached') this.#checkpoints.note(item.checkpoints);
        if (item.kind === 'events') await this.#gate;
      }
    } catch (error) {
      this.#failure = { error };
    }
  }
}
