import { CorruptEventError, Fault } from '#libs/kernel/faults.ts';
import type { StoredEvent } from '#libs/platform/eventstore/index.ts';
import type { Projector } from '#libs/platform/readmodel/index.ts';
import type { ProgressReport } from './progress.ts';

/** Attempts at an event whose error no store has caused: a bug in a projection persists. */
const MAX_ATTEMPTS = 3;

/** Selects events to skip, because the read models of their category hold them already. */
type IsAhead = ((event: StoredEvent) => boolean) | undefined;

/** Applies events to the read models, and finds the event that cannot be applied. */
export class EventApplier {
  readonly #projector: Projector;
  readonly #progress: ProgressReport;
  /** The event that failed last, though the stores answered. */
  #failing: { readonly name: string; readonly attempts: number } | null = null;

  constructor(projector: Projector, progress: ProgressReport) {
    this.#projector = projector;
    this.#progress = progress;
  }

  /**
   * The events before one that cannot be applied are applied, so that the loop halts at exactly that event.
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
      const attempts = this.#failing?.name === name ? this.#failing.attempts + 1 : 1;
      this.#failing = { name, attempts };
      if (attempts < MAX_ATTEMPTS) throw error;
      throw new CorruptEventError(`${name} cannot be applied: ${String(error)}`, { cause: error });
    }
  }

  async #applyBatch(events: readonly StoredEvent[], isAhead: IsAhead): Promise<void> {
    const { phase, source, eventsSeen } = this.#progress.now;
    const wanted = isAhead === undefined ? events : events.filter((event) => !isAhead(event));
    await this.#projector.applyStored(wanted, { repairLists: phase === 'catching-up' });
    this.#progress.report({ eventsSeen: eventsSeen + events.length });
    // The position of a partition is known from its checkpoints only.
    if (source === 'log') this.#progress.reached(events.at(-1)?.position ?? null);
  }
}

/** What Redis answers to a command, such as that a key is of another kind, an operator may mend at any time. */
function isOfStore(error: unknown): boolean {
  return error instanceof Fault || (error instanceof Error && error.name === 'ReplyError');
}
