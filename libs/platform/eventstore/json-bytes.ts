const known = new WeakMap<object, number>();

/**
 * Bytes of the data or metadata of an event as JSON. Cached by object, because a command's events are measured when they
 * are decided and when they are appended. They never change.
 */
export function jsonBytesOf(value: object): number {
  let bytes = known.get(value);
  if (bytes === undefined) known.set(value, (bytes = Buffer.byteLength(JSON.stringify(value))));
  return bytes;
}
