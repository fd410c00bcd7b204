/**
 * The flags of Node, and sizes that fit in the memory that the system gives Parley. `infra/set-up/start.mjs` runs this
 * file by itself, so it must not import others of Parley.
 */
import { totalmem } from 'node:os';

/** The limit of the container or control group; undefined if there is none. */
function memoryLimit(): number | undefined {
  const bytes = process.constrainedMemory();
  return bytes > 0 && bytes < totalmem() ? bytes : undefined;
}

/**
 * Measured on two cores under load: the slowest answers are the pauses of the collector. Without helper threads, which
 * compete with the event loop for the cores, there are fewer; with a young generation of this size they are shorter than
 * with a larger one, and a smaller one lets more objects grow old.
 */
export const DEFAULT_NODE_FLAGS = '--max-semi-space-size=16 --single-threaded-gc';

const MIB = 1024 ** 2;
/** From here on, flags and caches are those of a machine without a limit. */
const AMPLE_BYTES = 2048 * MIB;

type Given = Readonly<Partial<Record<'PARLEY_NODE_FLAGS' | 'NODE_OPTIONS', string>>>;

/** How Node is started for serving. */
interface NodeStart {
  readonly flags: readonly string[];
  /** Variables that the environment may replace. */
  readonly environment: Readonly<Record<string, string>>;
}

/**
 * The given flags (`PARLEY_NODE_FLAGS`), or those that fit the limit, without those that `NODE_OPTIONS` has.
 *
 * Within a small limit: the young generation has three semi-spaces in each of two threads, 384 MiB by default. The
 * collector would let garbage grow to several times what is in use, and to 64 MiB of buffers in each thread, before it
 * looks at old objects: `--memory-saver-mode` makes it look sooner, for a third more processor time. The allocator of C
 * returns freed memory at once, and has fewer arenas.
 */
export function nodeStart(
  { PARLEY_NODE_FLAGS: given, NODE_OPTIONS: others = '' }: Given,
  limit = memoryLimit(),
): NodeStart {
  const isAmple = limit === undefined || limit >= AMPLE_BYTES;
  const flags = given || (isAmple ? DEFAULT_NODE_FLAGS : smallFlags(limit));
  // Node prefers its arguments to NODE_OPTIONS.
  const isOwn = (flag: string): boolean => flag !== '' && !others.includes(nameOf(flag));
  const own = flags.split(/\s+/).filter(given ? Boolean : isOwn);
  return { flags: own, environment: isAmple ? {} : SMALL_ALLOCATOR };
}

const nameOf = (flag: string): string => flag.split('=')[0] ?? '';

const SMALL_ALLOCATOR = {
  MALLOC_ARENA_MAX: '2',
  MALLOC_TRIM_THRESHOLD_: '131072',
  MALLOC_MMAP_THRESHOLD_: '131072',
} as const;

function smallFlags(limit: number): string {
  const semiSpace = limit >= 1024 * MIB ? 16 : limit >= 512 * MIB ? 8 : 2;
  // V8 ends the process at its own limit, which is therefore higher where the collector keeps the heap small by itself.
  const savesMemory = limit < 768 * MIB;
  const oldSpace = Math.max(96, Math.floor((limit / MIB) * (savesMemory ? 0.45 : 0.3)));
  const flags = `--max-semi-space-size=${semiSpace} --max-old-space-size=${oldSpace} --single-threaded-gc`;
  return savesMemory ? `${flags} --memory-saver-mode` : flags;
}

const GIB = 1024 ** 3;

/** The bound of a cache in bytes, or of a batch in events: `most` where memory is ample, else the same share of the limit. */
export function withinMemory(most: number, limit = memoryLimit()): number {
  return Math.floor(most * Math.min(1, (limit ?? AMPLE_BYTES) / AMPLE_BYTES));
}

/**
 * The most that the private Redis may hold beside Parley: then it refuses writes by name, where the system would kill a
 * process. It takes a fifth more of the system, and copies some of it while it rewrites its file; the rest of the limit is
 * for Parley. Undefined: no bound.
 */
export function redisMemory(limit = memoryLimit()): number | undefined {
  return limit === undefined ? undefined : Math.floor(Math.max(0.2 * limit, 0.6 * limit - 0.7 * GIB));
}

/**
 * Bytes of request bodies that a process works on at a time. A body takes up to 20 times its bytes until it is answered:
 * as text, parsed, as events, and in the buffers of both sides of the event store and of Redis.
 */
export function bodyMemory(limit = memoryLimit() ?? totalmem()): number {
  return Math.floor(limit / 96);
}
