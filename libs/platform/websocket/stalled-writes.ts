import type { ServerResponse } from 'node:http';

import { bytesTaken } from './socket-writes.ts';

/** A client with unsent bytes that reads none for this many checks is stalled. */
const STALLED_CHECKS = 20;
const NOTHING_UNSENT = -1;

/**
 * Finds clients that read nothing. The socket's own timeout would take twice as long: it ignores the first time if the
 * queue has changed since the last write.
 */
export class StalledWrites {
  readonly #response: ServerResponse;
  /** Bytes that the kernel had accepted at the last check. */
  #taken = NOTHING_UNSENT;
  #checks = 0;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  /** Called every second. @returns whether the client has read nothing for 20 seconds */
  check(): boolean {
    const { socket, writableLength } = this.#response;
    const taken = socket === null || writableLength === 0 ? NOTHING_UNSENT : bytesTaken(socket);
    this.#checks = taken === this.#taken && taken !== NOTHING_UNSENT ? this.#checks + 1 : 0;
    this.#taken = taken;
    return this.#checks >= STALLED_CHECKS;
  }
}
