import type { ServerResponse } from 'node:http';

import { bytesTaken, drained } from '#libs/platform/websocket/index.ts';

import { ChannelListener } from './channel-listener.ts';
import type { LiveChannel } from './live-channel.ts';
import type { CloseCode } from './protocol.ts';
import type { RealtimeNode } from './realtime-node.ts';
import type { Grant } from './realtime.ports.ts';

const COMMENT = Buffer.from(':\n\n');

/** Of the node's ticks. */
const STALLED_TICKS = 20;

/**
 * One response of server-sent events. The other side says nothing: whether it is there shows when it is written
 * to. One that takes nothing of what waits for it is cut off.
 */
export class EventStream extends ChannelListener {
  grant: Grant;
  readonly include: number;
  readonly #node: RealtimeNode;
  readonly #channel: LiveChannel;
  readonly #response: ServerResponse;
  readonly #gone = Promise.withResolvers<void>();
  #isOpen = true;
  /** Runs while something is unsent. */
  #stallClock: NodeJS.Timeout | undefined;

  /** The head of the response has been written. */
  constructor(
    node: RealtimeNode,
    place: { readonly grant: Grant; readonly channel: LiveChannel; readonly include: number },
    response: ServerResponse,
  ) {
    super();
    this.#node = node;
    this.grant = place.grant;
    this.include = place.include;
    this.#channel = place.channel;
    this.#response = response;
    response.on('error', () => response.destroy());
    response.on('close', () => this.#onClosed());
  }

  get form(): 'event-stream' {
    return 'event-stream';
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get unsent(): number {
    return this.#response.writableLength;
  }

  /** @param after sequence of the last event seen, not beyond the channel's head */
  open(after: number): void {
    this.position = after;
    this.#node.add(this);
    // So that whoever waits for the head sees at once that the stream stands.
    this.write(COMMENT);
    this.#channel.join(this);
  }

  write(frames: Buffer): void {
    if (!this.#isOpen) return;
    this.#response.write(frames);
    this.#watch();
  }

  /**
   * Cuts a peer that takes nothing. The socket's own timeout needs twice as long: it passes over the first time, when
   * the queue is not what it was at the last write.
   */
  #watch(): void {
    const { socket } = this.#response;
    if (this.#stallClock !== undefined || socket === null || this.unsent === 0) return;
    let [taken, stalled] = [bytesTaken(socket), 0];
    this.#stallClock = setInterval(() => {
      const before = taken;
      taken = bytesTaken(socket);
      stalled = taken === before ? stalled + 1 : 0;
      if (this.unsent === 0) this.#stopWatching();
      else if (stalled >= STALLED_TICKS) this.cut();
    }, this.#node.tickMs);
  }

  #stopWatching(): void {
    clearInterval(this.#stallClock);
    this.#stallClock = undefined;
  }

  drained(): Promise<void> {
    return drained(this.#response);
  }

  /** Whoever reads a stream needs no such mark: every event says where it stands. */
  caughtUp(): void {}

  beat(): void {
    this.write(COMMENT);
  }

  checkBeat(): void {}

  /** Says why in an event of its own kind, which nobody takes for one of the channel. */
  close(code: CloseCode, reason: string): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#channel.leave(this);
    this.#response.end(`event: close\ndata: ${JSON.stringify({ code, reason })}\n\n`);
    this.#watch();
  }

  cut(): void {
    this.#response.destroy();
  }

  closed(): Promise<void> {
    return this.#gone.promise;
  }

  #onClosed(): void {
    this.#isOpen = false;
    this.#stopWatching();
    this.#channel.leave(this);
    this.#node.remove(this);
    this.#gone.resolve();
  }
}
