import type { Socket } from 'node:net';

import { WebSocket } from 'ws';

import { descriptorOf, drained, writeDirectly } from './socket-writes.ts';

/** Receives the messages of a connection. Its methods are called from the event loop and must not throw. */
export interface ConnectionOwner {
  /** A whole text message, valid UTF-8. */
  onText(message: Buffer): void;
  onBinary(): void;
  /** A ping or a pong of the websocket protocol itself; a ping has been answered. The owner must limit their number. */
  onControl(): void;
  /** Called once, when the connection is closed. `code` is the close code of either side, or 1006. */
  onClosed(code: number): void;
}

/**
 * One websocket, from its handshake on. Encoded frames bypass the library: any number of frames is one system call, and
 * any number of sockets share one buffer.
 *
 * All connections share the handlers below, so that an idle one costs little more than the library's own.
 */
export class Connection extends WebSocket {
  #owner: ConnectionOwner | null = null;
  #raw: Socket | null = null;
  #descriptor = -1;
  #closeCode = 0;

  /** Must be called in the same iteration of the event loop as the handshake, or messages are lost. */
  own(raw: Socket, owner: ConnectionOwner): void {
    this.#raw = raw;
    this.#descriptor = descriptorOf(raw);
    this.#owner = owner;
    this.on('message', onMessage);
    this.on('ping', onControl);
    this.on('pong', onControl);
    this.on('close', onClose);
    // An error closes the socket with its own code, which `onClosed` reports.
    this.on('error', ignore);
  }

  get isOpen(): boolean {
    return this.readyState === WebSocket.OPEN;
  }

  /** Written bytes that the kernel has not accepted yet. */
  get unsentBytes(): number {
    return this.#raw?.writableLength ?? 0;
  }

  /** Writes whole frames (see `textFrame`). Does nothing once the connection is closing. */
  write(frames: Buffer): void {
    if (this.#raw !== null && this.readyState === WebSocket.OPEN) writeDirectly(this.#raw, this.#descriptor, frames);
  }

  /** Resolves when no bytes are unsent, or the connection is closed. Never rejects. */
  async drained(): Promise<void> {
    if (this.#raw !== null) await drained(this.#raw);
  }

  /** Starts the closing handshake after the written frames. Later calls do nothing. */
  end(code: number, reason: string): void {
    if (this.readyState !== WebSocket.OPEN) return;
    this.#closeCode = code;
    this.close(code, reason);
  }

  /** For the handlers below. */
  get owner(): ConnectionOwner | null {
    return this.#owner;
  }

  /** For the handlers below. */
  closed(code: number): void {
    const owner = this.#owner;
    this.#owner = null;
    owner?.onClosed(this.#closeCode === 0 ? code : this.#closeCode);
  }
}

function onMessage(this: WebSocket, data: unknown, isBinary: boolean): void {
  if (!(this instanceof Connection) || !Buffer.isBuffer(data)) return;
  if (isBinary) this.owner?.onBinary();
  else this.owner?.onText(data);
}

function onControl(this: WebSocket): void {
  if (this instanceof Connection) this.owner?.onControl();
}

function onClose(this: WebSocket, code: number): void {
  if (this instanceof Connection) this.closed(code);
}

function ignore(): void {}
