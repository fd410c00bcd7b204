import { NO_EVENTS, type StreamRevision } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { entityKeys, type FieldLookup, type Lookup, type ReadModelName } from '#libs/platform/readmodel/index.ts';

import type { CommandStores } from './command-context.ts';
import { Lookups } from './lookups.ts';
import type { RecentCommands } from './repeated-command.ts';
import { untilSettled } from './until-settled.ts';

interface Entity {
  readonly organizationId: EntityId;
  readonly id: EntityId;
}

/** What the handler knows of the stream up to the revision that a batch is decided on. */
export interface KnownOfStream {
  readonly revision: StreamRevision;
  readonly recent: RecentCommands | undefined;
  /** The batch before, while it is being applied. */
  applying(): Promise<void> | undefined;
}

/** Reads the look-ups of commands from the read models of one category. */
export class LookupReader {
  readonly #projection: ReadModelName;
  readonly #stores: Pick<CommandStores, 'readModel' | 'projector'>;

  constructor(projection: ReadModelName, stores: Pick<CommandStores, 'readModel' | 'projector'>) {
    this.#projection = projection;
    this.#stores = stores;
  }

  /**
   * Values as of the revision that the batch is decided on, or later; if later, the append will conflict. While Redis is
   * unavailable, only the commands that have look-ups fail.
   */
  async read(entity: Entity, wanted: readonly Lookup[], known: KnownOfStream): Promise<Lookups> {
    const isAbsent = (lookup: Lookup): boolean => 'field' in lookup && isStillAbsent(lookup, known);
    const absent = wanted.filter(isAbsent);
    const others = wanted.filter((lookup) => !isAbsent(lookup));
    const nothing = absent.map(() => null);
    if (others.length === 0) return new Lookups(absent, nothing);
    try {
      const values = await untilSettled(notCaughtUp, () => this.#valuesAt(entity, others, known));
      return new Lookups([...absent, ...others], [...nothing, ...values]);
    } catch (error) {
      return new Lookups([], [], error);
    }
  }

  /** @returns undefined if the read model is behind, and may have changed meanwhile */
  async #valuesAt({ organizationId, id }: Entity, wanted: readonly Lookup[], { revision, applying }: KnownOfStream) {
    const { readModel, projector } = this.#stores;
    const { revision: revisionKey } = entityKeys(this.#projection, organizationId, id);
    if (revision === NO_EVENTS) {
      // Without events, there is nothing to be found. As for any look-up, the command fails while Redis does not answer.
      await readModel.lookUp(revisionKey, []);
      return wanted.map(() => null);
    }
    const found = await readModel.lookUp(revisionKey, wanted);
    if (found.revision >= revision) return found.values;
    const pending = applying();
    if (pending !== undefined) return pending.then(() => undefined);
    // Another organization's entity cannot be caught up: its look-ups are empty, and the command is rejected.
    const isCaughtUp = await projector.catchUp(this.#projection.category, organizationId, id);
    return isCaughtUp ? undefined : found.values;
  }
}

/** The command itself is not among those since then: it would have been found as repeated. */
function isStillAbsent({ absentAt }: FieldLookup, { revision, recent }: KnownOfStream): boolean {
  return absentAt !== undefined && (absentAt >= revision || recent?.hasAllAfter(absentAt) === true);
}

function notCaughtUp(): Fault {
  return new Fault('not_caught_up', 'The read models are being built', { retryAfterSeconds: 2 });
}
