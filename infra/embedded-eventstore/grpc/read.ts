// Streams.Read without a subscription: page after page until the count is
// reached or nothing is left.
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { EventLog } from '../log/event-log.ts';
import { invalidArgument } from './errors.ts';
import type { Outgoing } from './outgoing.ts';
import { PAGE_SIZE, planRead } from './read-plan.ts';
import type { ReadPlan } from './read-plan.ts';
import { streamNotFoundResponse } from './read-responses.ts';
import { subscribe } from './subscription.ts';

/** Serves one Read call to its end. @throws CallError */
export async function read(log: EventLog, request: ReadReq, out: Outgoing): Promise<void> {
  const options = request.getOptions();
  if (!options) throw invalidArgument('A read needs options.');
  const plan = planRead(log, options);
  if (options.hasSubscription()) return subscribe(plan, out);
  await readPages(log, plan, Number(options.getCount()), out);
  out.end();
}

async function readPages(log: EventLog, plan: ReadPlan, count: number, out: Outgoing): Promise<void> {
  const { source, direction, stream } = plan;
  let from: number | 'end' | undefined = firstPlace(plan);
  let left = count;
  let page = source.page(from, direction, Math.min(PAGE_SIZE, left));
  if (stream !== undefined && log.streamInfo(stream).status === 'missing') {
    out.write(streamNotFoundResponse(stream));
    return;
  }
  while (left > 0) {
    for (const event of page.events) {
      if (left === 0 || out.isClosed) return;
      if (plan.filter && !plan.filter.matches(event)) continue;
      left--;
      if (!out.write(plan.encode(event))) await out.ready();
    }
    from = page.next;
    if (from === undefined || left === 0 || out.isClosed) return;
    await nextTurn();
    page = source.page(from, direction, plan.filter ? PAGE_SIZE : Math.min(PAGE_SIZE, left));
  }
}

/** Backwards, `$all` begins before the given position, a stream at the given revision: as on the real server. */
function firstPlace({ from, direction, stream }: ReadPlan): number | 'end' {
  if (from === 'end') return from;
  if (direction === 'forwards') return from ?? 0;
  if (stream === undefined) return (from ?? 0) - 1;
  return from ?? 0;
}
