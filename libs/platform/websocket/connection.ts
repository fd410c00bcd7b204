import type { Socket } from 'node:net';

import { WebSocket } from 'ws';

import { descriptorOf, writeDirectly } from './direct-write.ts';
import { drained } from './drained.ts';

/** Who a connection belongs to. Calls come from the event loop; they must not throw. */
export interface ConnectionOwner {
  /** A whole text message, valid UTF-8. */
  onText(message: Buffer): void;
  /** A whole binary message. */
  onBinary(): void;
  /** A ping or a pong of the websocket protocol itself; a ping has been answered. Only the owner limits their number. */
  onControl(): void;
  /** Once, when nothing is left. `code` is what the peer was told, or told us, or 1006. */
  onClosed(code: number): void;
}

/**
 * One websocket, from its handshake on. Frames that are ready are written past the library, straight to the
 * socket: one system call for any number of frames, one buffer for any number of sockets.
 *
 * It holds no listener of its own: all of them share the functions below, so that an idle connection costs
 * little more than the library's.
 */
export class Connection extends WebSocket {
  #owner: ConnectionOwner | null = null;
  #raw: Socket | null = null;
  #descriptor = -1;
  #closedWith = 0;

  /** To be called before the event loop goes on after the handshake, or messages are lost. */
  own(raw: Socket, owner: ConnectionOwner): void {
    this.#raw = raw;
    this.#descriptor = descriptorOf(raw);
    this.#owner = owner;
    this.on('message', onMessage);
    this.on('ping', onControl);
    this.on('pong', onControl);
    this.on('close', onClose);
    // What is wrong closes the socket, with the code that says so; `onClosed` tells.
    this.on('error', ignore);
  }

  get isOpen(): boolean {
    return this.readyState === WebSocket.OPEN;
  }

  /** Bytes that the peer's end has not taken yet, those in the kernel's hands apart. */
  get unsent(): number {
    return this.#raw?.writableLength ?? 0;
  }

  /** Writes whole frames (see `textFrame`). Nothing happens once the connection is closing. */
  write(frames: Buffer): void {
    if (this.#raw !== null && this.readyState === WebSocket.OPEN) writeDirectly(this.#raw, this.#descriptor, frames);
  }

  /** Resolves when nothing is unsent any more, or the connection is closed. Never rejects. */
  async drained(): Promise<void> {
    if (this.#raw !== null) await drained(this.#raw);
  }

  /** Begins the closing handshake behind what was written, and says so with `code`. Later calls do nothing. */
  end(code: number, reason: string): void {
    if (this.readyState !== WebSocket.OPEN) return;
    this.#closedWith = code;
    this.close(code, reason);
  }

  /** For the listeners below. */
  get owner(): ConnectionOwner | null {
    return this.#owner;
  }

  /** For the listeners below. */
  closed(code: number): void {
    const owner = this.#owner;
    this.#owner = null;
    owner?.onClosed(this.#closedWith === 0 ? code : this.#closedWith);
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
