import type { FastifyRequest } from 'fastify';
import { Fault } from '#libs/kernel/faults.ts';

/** The largest body, in bytes, of routes without a limit of their own. */
export const BODY_LIMIT = 256 * 1024;

/**
 * Bounds the bodies that a process works on at a time, in bytes: many large requests at once are refused by name, where
 * they would take the memory of the process otherwise. A body counts from the head of its request, so what is refused is
 * never read, until its reply begins. One body is served whatever its size.
 */
export class BodyBudget {
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /**
   * @param most bytes that the route accepts: counted for a body whose length its head does not tell
   * @throws Fault `overloaded`
   */
  hold(request: FastifyRequest, most: number): void {
    const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
    const bytes = length !== undefined ? Math.min(Number(length), most) : encoding !== undefined ? most : 0;
    if (this.#bytes > 0 && this.#bytes + bytes > this.#maxBytes)
      throw new Fault('overloaded', 'Too many bytes of requests are being served', { retryAfterSeconds: 1 });
    request.bodyBytes = bytes;
    this.#bytes += bytes;
  }

  release(request: FastifyRequest): void {
    this.#bytes -= request.bodyBytes;
    request.bodyBytes = 0;
  }
}
