// Finds a damaged events.mdb before LMDB maps it into memory: LMDB trusts the file, so a truncated one ends the process
// with SIGBUS, damaged meta pages end it with SIGSEGV, and a lost page with SIGABRT at its first use, all without a message.
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
/** `lower` counts the offsets of the nodes that follow the header at `end`; these are relative to it as well. */
const PAGE = { number: 0, flags: 18, lower: 20, end: 24 } as const;
const [P_BRANCH, P_LEAF, P_OVERFLOW, P_META] = [0x01, 0x02, 0x04, 0x08];
const P_KIND = P_BRANCH | P_LEAF | P_OVERFLOW | P_META;
/** In a branch, the first three hold the number of a page. `data` is followed by the key and then, in a leaf, the value. */
const NODE = { low: 0, flags: 4, keySize: 6, data: 8 } as const;
const [F_BIGDATA, F_SUBDATA] = [0x01, 0x02];
/** `MDB_db`, the value of a node with `F_SUBDATA`: the root of a table. */
const TABLE = { depth: 6, root: 40, end: 48 } as const;
const NO_PAGE = 0xffff_ffff_ffff_ffffn;
/** LMDB's limit (`CURSOR_STACK`). */
const MAX_DEPTH = 32;
/** A damaged tree can contain a cycle. */
const READ_ALL_TIMEOUT_MS = 10 * 60_000;
const READS = 3;

type Tree = { depth: number; root: bigint };
type Meta = { pageSize: number; lastPage: bigint; transaction: bigint; trees: Tree[] };

/** `problem` is the end of a sentence. `isCertain` is false for findings that also occur in files that LMDB can read. */
type Finding = { problem: string; isCertain: boolean };

/**
 * Checks the structure that LMDB relies on: both meta pages, the length of the file, and every page of the trees of the
 * newest commit, of which a disk or a file system may have lost some. This reads each of these pages (but not the long
 * values beside them): of a log of 1.1 GB in the page cache, 0.9 s on one slow core. LMDB may leave free pages at the end of the file unwritten, and
 * a writer reuses pages, so a child process reads such a file completely, and its result decides.
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
  const broken = brokenPage(descriptor, newest);
  if (broken !== undefined) return { problem: `its page ${broken} is not that of a log`, isCertain: false };
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

function isRoot(descriptor: number, { depth, root }: Tree, { pageSize, lastPage }: Meta): boolean {
  if (root === NO_PAGE) return depth === 0;
  if (root < 2n || root > lastPage || depth < 1 || depth > MAX_DEPTH) return false;
  return isPage(readPage(descriptor, root, { pageSize }, PAGE.end), root, depth === 1 ? P_LEAF : P_BRANCH);
}

function isPage(bytes: Buffer, number: bigint, kind: number): boolean {
  if (bytes.length < PAGE.end || bytes.readBigUInt64LE(PAGE.number) !== number) return false;
  return (bytes.readUInt16LE(PAGE.flags) & P_KIND) === kind;
}

/** @returns fewer bytes at the end of the file */
function readPage(descriptor: number, number: bigint, { pageSize }: { pageSize: number }, length = pageSize): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  return bytes.subarray(0, readSync(descriptor, bytes, 0, length, number * BigInt(pageSize)));
}

/** The number of a page that the trees refer to and that is none of theirs; undefined if there is none. */
function brokenPage(descriptor: number, meta: Meta): bigint | undefined {
  const pending = meta.trees.filter(({ root }) => root !== NO_PAGE);
  // Each page belongs to one tree once: more visits than pages are a cycle.
  let visits = 0n;
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { root, depth } = next;
    if (root < 2n || root > meta.lastPage || depth < 1 || depth > MAX_DEPTH || visits++ > meta.lastPage) return root;
    const page = readPage(descriptor, root, meta);
    if (page.length < meta.pageSize || !isPage(page, root, depth === 1 ? P_LEAF : P_BRANCH)) return root;
    for (const node of nodesOf(page)) {
      if (node === undefined) return root;
      if (depth > 1) {
        pending.push({ root: BigInt(node.readUIntLE(NODE.low, 6)), depth: depth - 1 });
        continue;
      }
      const flags = node.readUInt16LE(NODE.flags);
      const value = node.subarray(NODE.data + node.readUInt16LE(NODE.keySize));
      if ((flags & F_BIGDATA) !== 0) {
        const number = value.length < 8 ? NO_PAGE : value.readBigUInt64LE(0);
        if (number > meta.lastPage) return root;
        if (!isPage(readPage(descriptor, number, meta, PAGE.end), number, P_OVERFLOW)) return number;
      } else if ((flags & F_SUBDATA) !== 0) {
        if (value.length < TABLE.end) return root;
        const table = { root: value.readBigUInt64LE(TABLE.root), depth: value.readUInt16LE(TABLE.depth) };
        if (table.root !== NO_PAGE) pending.push(table);
      }
    }
  }
  return undefined;
}

/** The nodes of a page, each with the bytes that follow it; undefined for a node outside of the page. */
function* nodesOf(page: Buffer): Generator<Buffer | undefined> {
  const count = page.readUInt16LE(PAGE.lower) >> 1;
  if (count === 0 || PAGE.end + 2 * count > page.length) return yield undefined;
  for (let index = 0; index < count; index++) {
    const at = page.readUInt16LE(PAGE.end + 2 * index) + PAGE.end;
    yield at + NODE.data <= page.length ? page.subarray(at) : undefined;
  }
}

/** Reads the file in a child process, because LMDB may end it by a signal. */
function canReadAll(file: string): boolean {
  const script = fileURLToPath(new URL('./read-all.process.ts', import.meta.url));
  const { status } = spawnSync(process.execPath, [script, file], { stdio: 'ignore', timeout: READ_ALL_TIMEOUT_MS });
  return status === 0;
}
