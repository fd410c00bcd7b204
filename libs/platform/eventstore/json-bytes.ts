const texts = new WeakMap<object, string>();

/**
 * Bytes of the data or metadata of an event as JSON. The text is kept until {@link takeJson}, because a command's events
 * are measured when they are decided, and sent when they are appended. They never change.
 */
export function jsonBytesOf(value: object): number {
  let text = texts.get(value);
  if (text === undefined) texts.set(value, (text = JSON.stringify(value)));
  return Buffer.byteLength(text);
}

/** The JSON of the value, which is forgotten: states may contain the value, and live longer than its append. */
export function takeJson(value: object): string {
  const text = texts.get(value) ?? JSON.stringify(value);
  texts.delete(value);
  return text;
}
