import type { Redis } from 'ioredis';

/** What is to be sent at the end of this turn, by connection. */
const turns = new WeakMap<Redis, (() => void)[]>();

/**
 * Calls `send` at the end of this turn of the event loop. All that is sent by such calls goes out in one write: a
 * write is a system call, and costs more than most commands. It goes in the order of asking, but what is to be
 * `first` goes before what is not.
 *
 * @param send sends commands before it returns, and does not throw
 */
export function atEndOfTurn(redis: Redis, send: () => void, { first = false } = {}): void {
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
    const stream: Redis['stream'] | undefined = redis.stream;
    stream?.cork();
    for (const one of sends) one();
    stream?.uncork();
  });
}
