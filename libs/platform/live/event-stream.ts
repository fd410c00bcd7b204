import type { ServerResponse } from 'node:http';

import { drained, StalledWrites } from '#libs/platform/websocket/index.ts';

import type { Grant } from './access.ts';
import type { LiveStream } from './live-stream.ts';
import type { CloseCode } from './close-codes.ts';
import type { LiveNode } from './live-node.ts';
import { Subscriber } from './subscriber.ts';

const COMMENT = Buffer.from(':\n\n');

/** One response of server-sent events. Its client sends nothing: only writes show whether it is connected. */
export class EventStream extends Subscriber {
  grant: Grant;
  readonly include: number;
  readonly #node: LiveNode;
  readonly #channel: LiveStream;
  readonly #response: ServerResponse;
  readonly #gone = Promise.withResolvers<void>();
  readonly #stalled: StalledWrites;
  #isOpen = true;

  /** @param response its headers must be written */
  constructor(
    node: LiveNode,
    of: { readonly grant: Grant; readonly channel: LiveStream; readonly include: number },
    response: ServerResponse,
  ) {
    super();
    this.#node = node;
    this.grant = of.grant;
    this.include = of.include;
    this.#channel = of.channel;
    this.#response = response;
    this.#stalled = new StalledWrites(response);
    response.on('error', () => response.destroy());
    response.on('close', () => this.#onClosed());
  }

  get format(): 'event-stream' {
    return 'event-stream';
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get unsentBytes(): number {
    return this.#response.writableLength;
  }

  /** @param after sequence of the last event seen, not beyond the channel's head */
  open(after: number): void {
    this.position = after;
    this.#node.add(this);
    // Shows clients that wait for the first bytes that the stream is open.
    this.write(COMMENT);
    this.#channel.join(this);
  }

  write(frames: Buffer): void {
    if (this.#isOpen) this.#response.write(frames);
  }

  override onTick(now: number): void {
    super.onTick(now);
    if (this.#stalled.check()) this.destroy();
  }

  drained(): Promise<void> {
    return drained(this.#response);
  }

  /** Event streams have no such frame: every event has its sequence. */
  caughtUp(): void {}

  ping(): void {
    this.write(COMMENT);
  }

  checkPong(): void {}

  /** Sends the reason as an event of the type `close`, which clients do not mistake for an event of the channel. */
  close(code: CloseCode, reason: string): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#channel.leave(this);
    this.#response.end(`event: close\ndata: ${JSON.stringify({ code, reason })}\n\n`);
  }

  destroy(): void {
    this.#response.destroy();
  }

  closed(): Promise<void> {
    return this.#gone.promise;
  }

  #onClosed(): void {
    this.#isOpen = false;
    this.#channel.leave(this);
    this.#node.remove(this);
    this.#gone.resolve();
  }
}
