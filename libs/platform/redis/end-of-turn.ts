import type { Redis } from 'ioredis';

import type { RedisClient } from './redis-client.ts';

/** What is to be sent at the end of this turn. */
const turns = new WeakMap<RedisClient, (() => void)[]>();

/**
 * Calls `send` at the end of this turn of the event loop. All that is sent by such calls goes out in one write
 * to each node: a write is a system call, and costs more than most commands. It goes in the order of asking, but what
 * is to be `first` goes before what is not.
 *
 * @param send sends commands before it returns, and does not throw
 */
export function atEndOfTurn(redis: RedisClient, send: () => void, { first = false } = {}): void {
  const waiting = turns.get(redis);
  if (waiting !== undefined) {
    if (first) waiting.unshift(send);
    else waiting.push(send);
    return;
  }
  const sends = [send];
  turns.set(redis, sends);
  setImmediate(() => {
    turns.delete(redis);
    // There is none before the first connection; the commands then fail by themselves.
    const streams = redis.nodes().map((node): Redis['stream'] | undefined => node.stream);
    for (const stream of streams) stream?.cork();
    for (const one of sends) one();
    for (const stream of streams) stream?.uncork();
  });
}
