// Catch-up subscriptions: confirmation, everything after the given place,
// `caught_up`, then whatever is committed. Live events are read from the log
// like old ones, so a slow client costs no memory.
import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Outgoing } from './outgoing.ts';
import { PAGE_SIZE } from './read-plan.ts';
import type { ReadPlan } from './read-plan.ts';
import { caughtUpResponse, checkpointResponse, confirmationResponse } from './read-responses.ts';
import type { FilterOptions } from './filter.ts';

/** Serves a subscription until the call is over. @throws CallError when the stream is deleted for ever */
export async function subscribe(plan: ReadPlan, out: Outgoing): Promise<void> {
  const { source } = plan;
  let next = plan.from === 'end' ? source.end() : plan.from === undefined ? 0 : plan.from + 1;
  const checkpoints = plan.filter && new Checkpoints(plan.filter, out, next - 1);
  const commits = new Signal();
  const unsubscribe = source.onCommit(() => commits.set());
  out.closed.addEventListener('abort', () => commits.set());
  let caughtUp = false;
  out.write(confirmationResponse(randomUUID()));
  try {
    while (!out.isClosed) {
      const page = source.page(next, 'forwards', PAGE_SIZE);
      for (const event of page.events) {
        if (!plan.filter || plan.filter.matches(event)) out.write(plan.encode(event));
        checkpoints?.considered(event.position);
        await out.ready();
        if (out.isClosed) return;
        next = source.placeOf(event) + 1;
      }
      if (page.next !== undefined) {
        next = page.next;
        await nextTurn();
        continue;
      }
      if (!caughtUp) {
        caughtUp = true;
        checkpoints?.caughtUp();
        out.write(caughtUpResponse());
      }
      await commits.wait();
    }
  } finally {
    unsubscribe();
  }
}

/** Tells the client of a filtered subscription how far the server has looked. */
class Checkpoints {
  #interval: number;
  #out: Outgoing;
  #position: number;
  #sinceLast = 0;
  #sent: number | undefined;

  constructor(filter: FilterOptions, out: Outgoing, position: number) {
    this.#interval = filter.checkpointInterval;
    this.#out = out;
    this.#position = Math.max(0, position);
  }

  considered(position: number): void {
    this.#position = position;
    if (++this.#sinceLast >= this.#interval) this.#send();
  }

  caughtUp(): void {
    if (this.#sent !== this.#position) this.#send();
  }

  #send(): void {
    this.#sinceLast = 0;
    this.#sent = this.#position;
    this.#out.write(checkpointResponse(this.#position));
  }
}

/** Remembers that it was set while nobody waited. */
class Signal {
  #isSet = false;
  #wake: (() => void) | undefined;

  set(): void {
    this.#isSet = true;
    this.#wake?.();
  }

  async wait(): Promise<void> {
    if (!this.#isSet) await new Promise<void>((resolve) => (this.#wake = resolve));
    this.#isSet = false;
    this.#wake = undefined;
  }
}
