import type { EntityId } from '#libs/kernel/ids.ts';
import { decodeLiveMessage, entityTopic, FRAME_FLAG } from '#libs/platform/live/index.ts';

import type { Prompting } from '../context.ts';
import type { Invocation } from '../decide/invocation.ts';
import { hasEnded, RUN, type Run } from '../run/run.ts';

/** What became of a prompt: its run has ended, or the agent was not invoked. */
export type Ending =
  { readonly kind: 'ended'; readonly run: Run } | { readonly kind: 'withheld'; readonly reason: Invocation['reason'] };

/** Pub/sub may lose the last frame of a run. */
const RECHECK_MS = 5_000;
/** Of an agent that is not invoked there is no frame: the first look at the decision, and twice as long until each next. */
const UNDECIDED_MS = 100;

/**
 * Waits until the run of a prompt has ended and its channel shows that. Frames on the run's topic wake it; the log
 * decides.
 *
 * @param runId of the run and of the decision that precedes it
 * @throws `Fault` `store_unavailable`; the reason of `signal` once it aborts
 */
export async function endOf(
  { organizationId, runId }: { readonly organizationId: EntityId; readonly runId: EntityId },
  { runs, invocations, topics, looks }: Pick<Prompting, 'invocations' | 'looks' | 'runs' | 'topics'>,
  signal: AbortSignal,
): Promise<Ending> {
  const waker = new Waker();
  const subscription = topics.subscribe(entityTopic(RUN, organizationId, runId), {
    onMessage: (message) => {
      if (decodeLiveMessage(message).some((item) => item.kind !== 'event' || (item.flags & FRAME_FLAG.last) !== 0)) {
        waker.wake();
      }
    },
    onListening: () => waker.wake(),
    onInterrupted: () => undefined,
  });
  const onAbort = (): void => waker.wake();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    const look = async () => {
      const run = await runs.inLog(organizationId, runId);
      return { run, decision: run === null ? await invocations.decision(runId) : null };
    };
    // Once the topic is received, no end is missed between two looks.
    await waker.wokenWithin(UNDECIDED_MS);
    for (let undecidedMs = UNDECIDED_MS; ; undecidedMs *= 2) {
      const { run, decision } = await looks.run(look, { group: organizationId, signal });
      if (run !== null && hasEnded(run) && run.isEndShown) return { kind: 'ended', run };
      if (decision !== null && decision.runId === null) return { kind: 'withheld', reason: decision.reason };
      await waker.wokenWithin(run === null ? Math.min(undecidedMs, RECHECK_MS) : RECHECK_MS);
    }
  } finally {
    signal.removeEventListener('abort', onAbort);
    subscription.stop();
  }
}

/** A wake-up while nothing waits is kept for the next wait. */
class Waker {
  #isWoken = false;
  #resolve: (() => void) | undefined;

  wake(): void {
    this.#isWoken = true;
    this.#resolve?.();
  }

  async wokenWithin(ms: number): Promise<void> {
    if (!this.#isWoken) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, ms);
      this.#resolve = resolve;
      await promise;
      clearTimeout(timer);
    }
    this.#isWoken = false;
  }
}
