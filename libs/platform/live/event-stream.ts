import type { ServerResponse } from 'node:http';

import { drained, StalledWrites } from '#libs/platform/websocket/index.ts';

import type { Grant } from './access.ts';
import type { FrameFormat } from './live-frame.ts';
import type { LiveStream } from './live-stream.ts';
import type { CloseCode } from './close-codes.ts';
import type { LiveNode } from './live-node.ts';
import { type CloseReasons, Subscriber } from './subscriber.ts';

const COMMENT = Buffer.from(':\n\n');

/** One response of server-sent events. Its client sends nothing: only writes show whether it is connected. */
export class EventStream extends Subscriber {
  grant: Grant;
  readonly include: number;
  readonly #node: LiveNode;
  readonly #stream: LiveStream;
  readonly #response: ServerResponse;
  readonly #gone = Promise.withResolvers<void>();
  readonly #stalled: StalledWrites;
  #isOpen = true;

  /** @param response its headers must be written */
  constructor(
    node: LiveNode,
    of: { readonly grant: Grant; readonly stream: LiveStream; readonly include: number },
    response: ServerResponse,
  ) {
    super();
    this.#node = node;
    this.grant = of.grant;
    this.include = of.include;
    this.#stream = of.stream;
    this.#response = response;
    this.#stalled = new StalledWrites(response);
    response.on('error', () => response.destroy());
    response.on('close', () => this.#onClosed());
  }

  get format(): FrameFormat {
    return 'event-stream';
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get unsentBytes(): number {
    return this.#response.writableLength;
  }

  /** @param after sequence of the last event seen, not beyond the stream's head */
  open(after: number): void {
    this.position = after;
    this.#node.add(this);
    // Shows clients that wait for the first bytes that the stream is open.
    this.write(COMMENT);
    this.#stream.join(this);
  }

  protected replay(after: number): void {
    this.#stream.leave(this);
    this.position = after;
    this.#stream.join(this);
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

  /** Sends the reason as an event of the type `close`, which clients do not mistake for an event of the stream. */
  close(code: CloseCode, reason: string): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#stream.leave(this);
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
    this.#stream.leave(this);
    this.#node.remove(this);
    this.#gone.resolve();
  }
}

const OF_ENTITIES: CloseReasons = {
  lost: 'The key has ended',
  ended: 'There are no more events',
  stopping: 'This process is stopping',
};

/** The event stream of an entity other than a channel: a client that reads slowly is sent from the log what it missed. */
export class EntityEventStream extends EventStream {
  override get format(): 'typed-event-stream' {
    return 'typed-event-stream';
  }

  override get reasons(): CloseReasons {
    return OF_ENTITIES;
  }

  override onSlow(after: number): void {
    this.replay(after);
  }
}
