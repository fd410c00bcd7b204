import { CorruptEventError, Fault } from '#libs/kernel/faults.ts';
import type { StoredEvent } from '#libs/platform/eventstore/index.ts';
import type { Projector } from '#libs/platform/readmodel/index.ts';
import type { ProgressReport } from './progress.ts';

/** At an event, with errors that are no store's: a mistake in a projection, which does not go away by itself. */
const MOST_TRIES = 3;

/** Selects events to skip, because the read models of their category hold them already. */
type IsAhead = ((event: StoredEvent) => boolean) | undefined;

/** Events -> read models, and which event it is that cannot be applied. */
export class EventApplier {
  readonly #projector: Projector;
  readonly #progress: ProgressReport;
  /** The event that could not be applied last, though no store is to blame. */
  #failing: { readonly name: string; readonly tries: number } | null = null;

  constructor(projector: Projector, progress: ProgressReport) {
    this.#projector = projector;
    this.#progress = progress;
  }

  /**
   * What stands before an event that cannot be applied is applied, so that the loop halts at that very event.
   *
   * @throws CorruptEventError at an event that can never be applied; anything else may pass
   */
  async apply(events: readonly StoredEvent[], isAhead?: IsAhead): Promise<void> {
    try {
      await this.#applyBatch(events, isAhead);
      this.#failing = null;
    } catch (error) {
      if (isOfStore(error)) throw error;
      for (const event of events) await this.#applyAlone(event, isAhead);
    }
  }

  /** @throws CorruptEventError also where the projection has failed at this very event often enough */
  async #applyAlone(event: StoredEvent, isAhead: IsAhead): Promise<void> {
    try {
      await this.#applyBatch([event], isAhead);
    } catch (error) {
      if (isOfStore(error) || error instanceof CorruptEventError) throw error;
      const name = `${event.type} ${event.stream}@${event.revision}`;
      const tries = this.#failing?.name === name ? this.#failing.tries + 1 : 1;
      this.#failing = { name, tries };
      if (tries < MOST_TRIES) throw error;
      throw new CorruptEventError(`${name} cannot be applied: ${String(error)}`, { cause: error });
    }
  }

  async #applyBatch(events: readonly StoredEvent[], isAhead: IsAhead): Promise<void> {
    const { phase, source, eventsSeen } = this.#progress.now;
    const wanted = isAhead === undefined ? events : events.filter((event) => !isAhead(event));
    await this.#projector.applyStored(wanted, { repairLists: phase === 'catching-up' });
    this.#progress.report({ eventsSeen: eventsSeen + events.length });
    // Of shares only a mark says how far they are.
    if (source === 'log') this.#progress.reached(events.at(-1)?.position ?? null);
  }
}

/** What Redis answers to a command, such as that a key is of another kind, an operator may mend at any time. */
function isOfStore(error: unknown): boolean {
  return error instanceof Fault || (error instanceof Error && error.name === 'ReplyError');
}
