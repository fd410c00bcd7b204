/** What `RedisClient.values` found, for readers that need all of it. */
type Values = readonly (Buffer | null | Error)[];

/** @throws the first fault among them */
export function bytesOf(values: Values): (Buffer | null)[] {
  return values.map((value) => {
    if (value instanceof Error) throw value;
    return value;
  });
}

/** As UTF-8. @throws the first fault among them */
export function textsOf(values: Values): (string | null)[] {
  return values.map((value) => {
    if (value instanceof Error) throw value;
    return value === null ? null : value.toString();
  });
}
