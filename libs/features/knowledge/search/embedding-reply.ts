/** Reads the replies of embedding endpoints, as they are rather than as they should be. */

const MAX_DIMENSIONS = 4_096;

/** The reply as a whole is no answer to the request. */
export class UnreadableReply extends Error {
  override readonly name = 'UnreadableReply';
}

/**
 * One vector of length 1 for each text; null for a text that the reply has no usable vector for: none, an empty one, one
 * of zeros, or with what is no number.
 *
 * @throws UnreadableReply also if the vectors differ in their number of dimensions
 */
export function vectorsIn(body: Uint8Array, count: number): (Float32Array | null)[] {
  const data = dataOf(body);
  if (!Array.isArray(data)) throw new UnreadableReply('the reply has no list of vectors');
  const vectors = Array.from({ length: count }, (): Float32Array | null => null);
  const isNumbered = data.every((item) => typeof Reflect.get(Object(item), 'index') === 'number');
  if (!isNumbered && data.length !== count) throw new UnreadableReply(`the reply does not have ${count} vectors`);
  const given = new Set<number>();
  for (const [place, item] of data.entries()) {
    const { index = place, embedding } = Object(item) as { index?: unknown; embedding?: unknown };
    const at = isNumbered ? Number(index) : place;
    if (!(at in vectors) || given.has(at)) throw new UnreadableReply('the vectors of the reply are not numbered');
    given.add(at);
    vectors[at] = unitVector(embedding);
  }
  const usable = vectors.filter((vector) => vector !== null);
  if (usable.some(({ length }) => length !== usable[0]?.length)) {
    throw new UnreadableReply('the vectors of the reply differ in their number of dimensions');
  }
  return vectors;
}

function dataOf(body: Uint8Array): unknown {
  try {
    const reply: unknown = JSON.parse(Buffer.from(body).toString());
    return typeof reply === 'object' && reply !== null && 'data' in reply ? reply.data : null;
  } catch (error) {
    throw new UnreadableReply('the reply is not JSON', { cause: error });
  }
}

function unitVector(embedding: unknown): Float32Array | null {
  const numbers = typeof embedding === 'string' ? floatsOf(embedding) : embedding;
  const isList = Array.isArray(numbers) || numbers instanceof Float32Array;
  if (!isList || numbers.length === 0 || numbers.length > MAX_DIMENSIONS) return null;
  let squares = 0;
  // Anything else than a number adds NaN.
  for (const value of numbers as readonly unknown[]) squares += typeof value === 'number' ? value * value : Number.NaN;
  const length = Math.sqrt(squares);
  if (!Number.isFinite(length) || length === 0) return null;
  return Float32Array.from(numbers as readonly number[], (value) => value / length);
}

/** Of `encoding_format` `base64`: 32-bit floats, the lowest byte first. Some endpoints send them unasked. */
function floatsOf(base64: string): Float32Array | null {
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.length === 0 || bytes.length % 4 !== 0) return null;
  return Float32Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4));
}
