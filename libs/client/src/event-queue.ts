import type { ChannelEvent } from './events.ts';

export interface QueueLimits {
  /** Events. Default 1,000. */
  readonly events?: number;
  /** Characters of JSON text. Default 8 million. */
  readonly characters?: number;
}

/** Received events that the consumer has not taken. While it is full, the caller stops receiving. */
export class EventQueue {
  readonly #maxEvents: number;
  readonly #maxCharacters: number;
  #items: { readonly event: ChannelEvent; readonly size: number }[] = [];
  #characters = 0;

  constructor({ events = 1_000, characters = 8_000_000 }: QueueLimits = {}) {
    this.#maxEvents = events;
    this.#maxCharacters = characters;
  }

  get length(): number {
    return this.#items.length;
  }
  get full(): boolean {
    return this.length >= this.#maxEvents || this.#characters >= this.#maxCharacters;
  }
  /** Whether to receive again: at half of the limits, because each pause costs a new connection. */
  get hasRoom(): boolean {
    return this.length <= this.#maxEvents / 2 && this.#characters <= this.#maxCharacters / 2;
  }

  /** @param size characters of its JSON text */
  push(event: ChannelEvent, size: number): void {
    this.#items.push({ event, size });
    this.#characters += size;
  }

  shift(): ChannelEvent | undefined {
    const item = this.#items.shift();
    this.#characters -= item?.size ?? 0;
    return item?.event;
  }

  clear(): void {
    this.#items = [];
    this.#characters = 0;
  }
}
