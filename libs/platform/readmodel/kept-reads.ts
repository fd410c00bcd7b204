import type { StreamRevision } from '#libs/kernel/event.ts';
import { withinMemory } from '#libs/platform/config/index.ts';
import { ByteCache } from '#libs/platform/streams/index.ts';

const MAX_BYTES = withinMemory(64 * 1024 * 1024);
/** Memory of a result beside its bytes: its objects, its key, and unused parts of its block. */
const ENTRY_BYTES = 1024;

/** A read whose result may be kept. */
export interface KeptRead<T> {
  /** Unique among the reads of the entity. */
  readonly name: string;
  /** The result in memory of its own, because replies are slices of larger blocks, and the size of that in bytes. */
  pack(result: T): readonly [result: T, bytes: number];
}

/** The result of a read of many parts of an entity. */
export interface WholeRead<T> {
  readonly result: T | null;
  /** Of the entity before the read. */
  readonly revision: StreamRevision;
  /** Whether it was the revision after the read, too: then the result reflects exactly the events up to it. */
  readonly hasHeld: boolean;
}

/** Notes about a read that was run: the revision of the entity, and the result. */
export interface KeptResult {
  /** Null if unknown. */
  readonly revision: string | null;
  /** Null if not kept. */
  readonly result: unknown;
  readonly bytes: number;
}

const RUN_ONCE: KeptResult = { revision: null, result: null, bytes: 0 };

/**
 * Results of reads of entities, each valid while the read model of its entity has the revision that it was read at. The
 * caller reads that revision for every use, so there is nothing to invalidate: a revision identifies what an entity's
 * other keys hold. Results are kept only after a read has found the same revision as the read before, because most reads
 * are run once, and results in an entity that changes all the time are never used.
 */
export class KeptReads extends ByteCache<KeptResult> {
  constructor(maxBytes = MAX_BYTES) {
    super(maxBytes, ({ bytes }) => ENTRY_BYTES + bytes);
  }

  /** Notes that a read runs. @returns the notes of earlier runs of the read; undefined before the second run */
  begin(key: string): KeptResult | undefined {
    const known = this.entries.get(key);
    if (known === undefined) this.entries.set(key, RUN_ONCE);
    return known;
  }

  /** Notes the revision that a read has found, without its result. */
  note(key: string, revision: string): void {
    this.entries.set(key, { ...RUN_ONCE, revision });
  }

  keep(key: string, revision: string, [result, bytes]: readonly [result: unknown, bytes: number]): void {
    this.entries.set(key, { revision, result, bytes });
  }
}
