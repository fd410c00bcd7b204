/** Who subscribes to a shared feed, and what it keeps. */
import { comparePositions } from '#libs/platform/eventstore/index.ts';
import type {
  SharedFeed,
  SharedFeedItem,
  SharedFeedOptions,
  ShareMark,
  StoredEvent,
} from '#libs/platform/eventstore/index.ts';
import type { GlobalPosition } from '#libs/kernel/event.ts';
import { eventually } from '#test/support/eventually.ts';

/** How far shares were brought by all subscribers of a feed: what has been said further on stays. */
export class Marks {
  readonly #marks: Map<string, ShareMark>;

  constructor(from: readonly ShareMark[]) {
    this.#marks = new Map(from.map((mark) => [mark.share, mark]));
  }

  get all(): readonly ShareMark[] {
    return [...this.#marks.values()];
  }

  get shares(): readonly string[] {
    return [...this.#marks.keys()].toSorted();
  }

  /** Of all shares. */
  get least(): GlobalPosition {
    const [first, ...rest] = this.all.map(({ position }) => position);
    if (first === undefined) throw new Error('a feed has shares');
    return rest.reduce((a, b) => (comparePositions(a, b) <= 0 ? a : b), first);
  }

  note(marks: readonly ShareMark[]): void {
    for (const { share, mark, position } of marks) {
      const known = this.#marks.get(share);
      if (known === undefined) throw new Error(`share ${share} was not there in the beginning`);
      this.#marks.set(share, {
        share,
        mark: numberOf(mark) >= numberOf(known.mark) ? mark : known.mark,
        position: comparePositions(position, known.position) > 0 ? position : known.position,
      });
    }
  }
}

export const numberOf = (mark: string): bigint => BigInt(mark.split(':')[0] ?? '');

/** Consumes a feed in the background, keeps what it got, and notes how far that has brought the shares. */
export class Subscriber {
  readonly items: SharedFeedItem[] = [];
  readonly #marks: Marks;
  readonly #abort = new AbortController();
  readonly #deliveryMs: number;
  readonly #done: Promise<void>;
  #failure: { readonly error: unknown } | undefined;
  #gate: Promise<void> | undefined;
  #open: (() => void) | undefined;

  constructor(feed: SharedFeed, marks: Marks, options: Partial<SharedFeedOptions>, deliveryMs: number) {
    this.#marks = marks;
    this.#deliveryMs = deliveryMs;
    const { signal } = this.#abort;
    this.#done = this.#consume(
      feed.subscribe({ streamPrefixes: [], signal, marks: async () => this.#marks.all, ...options }),
    );
  }

  get events(): readonly StoredEvent[] {
    return this.items.flatMap((item) => (item.kind === 'events' ? item.events : []));
  }

  /** Those that it was given last, by name. */
  get shares(): readonly string[] {
    const last = this.items.findLast((item) => item.kind === 'assigned');
    return (last?.marks ?? []).map(({ share }) => share).toSorted();
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

  has(kind: SharedFeedItem['kind']): boolean {
    return this.items.some((item) => item.kind === kind);
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#done;
  }

  async #consume(feed: AsyncIterable<SharedFeedItem>): Promise<void> {
    try {
      for await (const item of feed) {
        this.items.push(item);
        if (item.kind === 'reached') this.#marks.note(item.marks);
        if (item.kind === 'events') await this.#gate;
      }
    } catch (error) {
      this.#failure = { error };
    }
  }
}
