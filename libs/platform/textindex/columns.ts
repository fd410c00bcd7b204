/* Columns of an index in memory, by the numbers of its rows. */

type Column = Int32Array | Float64Array | Uint16Array | Uint8Array;

const MIN_LENGTH = 1_024;

/** A column that is long enough for `size` values. @param growth its factor, if it has to become longer */
export function enlarged<C extends Column>(column: C, size: number, growth = 2): C {
  if (size <= column.length) return column;
  const length = Math.max(MIN_LENGTH, size, Math.ceil(column.length * growth));
  const larger = new (column.constructor as new (length: number) => C)(length);
  larger.set(column as never);
  return larger;
}
