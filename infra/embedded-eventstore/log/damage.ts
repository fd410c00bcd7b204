// Finds a damaged events.mdb before LMDB maps it into memory: LMDB trusts the file, so a truncated one ends the process
// with SIGBUS and damaged meta pages end it with SIGSEGV, both without a message.
import { spawnSync } from 'node:child_process';
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Offsets in a meta page, after LMDB's `MDB_page_header` and `MDB_meta` (data version 2, 64 bits). */
const META = {
  flags: 18,
  magic: 24,
  version: 28,
  pageSize: 48,
  free: { flags: 52, depth: 54, root: 88 },
  main: { flags: 100, depth: 102, root: 136 },
  lastPage: 144,
  transaction: 152,
  end: 160,
} as const;
const MAGIC = 0xbeefc0de;
const VERSION = 2;
/**
 * `MDB_INTEGERKEY`. LMDB stores the flags of the file beside it: `MDB_NOSUBDIR`, and those that change neither the
 * format nor the mapping (`MDB_TRACK_METRICS`, `MDB_SAFE_RESTORE`, `MDB_OVERLAPPINGSYNC`).
 */
const FREE_FLAGS = 0x0008;
const FILE_FLAGS = 0x4000 | 0x0400 | 0x0800 | 0x1000;
/** The log opens the main tree without flags. */
const MAIN_FLAGS = 0;
const PAGE = { number: 0, flags: 18, end: 20 } as const;
const [P_BRANCH, P_LEAF, P_META] = [0x01, 0x02, 0x08];
const NO_PAGE = 0xffff_ffff_ffff_ffffn;
/** LMDB's limit (`CURSOR_STACK`). */
const MAX_DEPTH = 32;
/** A damaged tree can contain a cycle. */
const READ_ALL_TIMEOUT_MS = 10 * 60_000;
const READS = 3;

type Meta = { pageSize: number; lastPage: bigint; transaction: bigint; trees: { depth: number; root: bigint }[] };

/** `problem` is the end of a sentence. `isCertain` is false for findings that also occur in files that LMDB can read. */
type Finding = { problem: string; isCertain: boolean };

/**
 * Checks the structure that LMDB relies on: both meta pages, the length of the file, the roots of the newest commit. This
 * reads a few hundred bytes. LMDB may leave free pages at the end of the file unwritten, so a child process reads a file
 * that is too short completely, and its result decides.
 *
 * @param file a missing or empty file is a log without events; it may be in use
 * @returns the damage, as the end of a sentence; undefined for a file that can be read
 */
export function damageOf(file: string): string | undefined {
  let finding: Finding | undefined;
  // A writer can change the pages between two reads; repeating rules that out.
  for (let reads = 0; reads < READS; reads++) {
    finding = findingOf(file);
    if (!finding) return undefined;
  }
  return finding?.isCertain || !canReadAll(file) ? finding?.problem : undefined;
}

function findingOf(file: string): Finding | undefined {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'r');
  } catch {
    // LMDB creates a missing file, and reports one that it may not open.
    return undefined;
  }
  try {
    return fstatSync(descriptor).size === 0 ? undefined : findingIn(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function findingIn(descriptor: number): Finding | undefined {
  const first = readMeta(descriptor, 0);
  const second = first && readMeta(descriptor, first.pageSize);
  if (!first || !second) return { problem: 'its meta pages are not those of a log', isCertain: true };
  const newest = first.transaction > second.transaction ? first : second;
  const areRoots = newest.trees.every((tree) => isRoot(descriptor, tree, newest));
  const needed = (newest.lastPage + 1n) * BigInt(newest.pageSize);
  const { size } = fstatSync(descriptor);
  if (BigInt(size) < needed) {
    return { problem: `it has ${size} bytes, but its newest commit needs ${needed}`, isCertain: !areRoots };
  }
  if (!areRoots) return { problem: 'its meta pages refer to pages that are not those of a log', isCertain: true };
  // Commits write the two meta pages in turn; before the first commit both hold 0.
  const isInTurn = newest === first ? isSuccessor(first, second) : isSuccessor(second, first);
  const isNew = first.transaction === 0n && second.transaction === 0n;
  return isInTurn || isNew ? undefined : { problem: 'its meta pages contradict each other', isCertain: false };
}

function isSuccessor(later: Meta, earlier: Meta): boolean {
  return later.transaction - earlier.transaction === 1n;
}

function readMeta(descriptor: number, at: number): Meta | undefined {
  const bytes = Buffer.alloc(META.end);
  if (readSync(descriptor, bytes, 0, META.end, at) < META.end) return undefined;
  const pageSize = bytes.readUInt32LE(META.pageSize);
  const isMeta =
    bytes.readUInt16LE(META.flags) === P_META &&
    bytes.readUInt32LE(META.magic) === MAGIC &&
    bytes.readUInt16LE(META.version) === VERSION;
  const areTrees =
    (bytes.readUInt16LE(META.free.flags) & ~FILE_FLAGS) === FREE_FLAGS &&
    bytes.readUInt16LE(META.main.flags) === MAIN_FLAGS;
  if (!isMeta || !areTrees || pageSize < 512 || pageSize > 65_536 || (pageSize & (pageSize - 1)) !== 0)
    return undefined;
  return {
    pageSize,
    lastPage: bytes.readBigUInt64LE(META.lastPage),
    transaction: bytes.readBigUInt64LE(META.transaction),
    trees: [META.free, META.main].map(({ depth, root }) => ({
      depth: bytes.readUInt16LE(depth),
      root: bytes.readBigUInt64LE(root),
    })),
  };
}

function isRoot(descriptor: number, { depth, root }: Meta['trees'][number], { pageSize, lastPage }: Meta): boolean {
  if (root === NO_PAGE) return depth === 0;
  if (root < 2n || root > lastPage || depth < 1 || depth > MAX_DEPTH) return false;
  const header = Buffer.alloc(PAGE.end);
  if (readSync(descriptor, header, 0, PAGE.end, root * BigInt(pageSize)) < PAGE.end) return false;
  const flags = header.readUInt16LE(PAGE.flags);
  return header.readBigUInt64LE(PAGE.number) === root && flags === (depth === 1 ? P_LEAF : P_BRANCH);
}

/** Reads the file in a child process, because LMDB may end it by a signal. */
function canReadAll(file: string): boolean {
  const script = fileURLToPath(new URL('./read-all.process.ts', import.meta.url));
  const { status } = spawnSync(process.execPath, [script, file], { stdio: 'ignore', timeout: READ_ALL_TIMEOUT_MS });
  return status === 0;
}
