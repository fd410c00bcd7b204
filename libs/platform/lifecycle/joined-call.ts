/**
 * The call of the key that is under way, or a new one, which later callers join until it has ended. Unlike `SharedCalls`,
 * a caller may get the outcome of a call that began before its own.
 */
export function joinedCall<Key, Result>(
  underWay: Map<Key, Promise<Result>>,
  key: Key,
  call: () => Promise<Result>,
): Promise<Result> {
  let running = underWay.get(key);
  if (running === undefined) {
    running = call().finally(() => underWay.delete(key));
    underWay.set(key, running);
  }
  return running;
}
