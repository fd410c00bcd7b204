/** A process of several steps, as tests of reactors use it: requested, stepped N times, done or failed. */
import { z } from 'zod';
import type { Fold } from '#libs/kernel/decider.ts';
import { NO_EVENTS, type StreamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { defineEvents, type EventOf, type EventStore } from '#libs/platform/eventstore/index.ts';
import { type Process, reactor, type Reactor } from '#libs/platform/reactors/index.ts';
import { logMetadata } from '../log-events.ts';

/** Steps of a job that no worker can do. */
export const HOPELESS = 999;

const schemas = {
  'JobRequested.v1': z.object({ steps: z.number() }),
  'JobStepped.v1': z.object({ step: z.number(), worker: z.string(), effect: z.string() }),
  'JobChargeStarted.v1': z.object({ worker: z.string() }),
  'JobDone.v1': z.object({ worker: z.string() }),
  'JobFailed.v1': z.object({ reason: z.string(), error: z.string().nullable() }),
};

export const jobEvents = defineEvents(schemas);
export type JobEvent = EventOf<typeof jobEvents>;

export interface JobState {
  readonly steps: number;
  readonly stepped: number;
  readonly isChargeStarted: boolean;
  readonly outcome: 'done' | 'failed' | null;
  readonly requestRevision: StreamRevision;
}

const fold: Fold<JobState, JobEvent> = {
  initialState: { steps: 0, stepped: 0, isChargeStarted: false, outcome: null, requestRevision: NO_EVENTS },
  evolve(state, event) {
    switch (event.type) {
      case 'JobRequested.v1':
        // A job that is requested again starts again.
        return { ...fold.initialState, steps: event.data.steps, requestRevision: event.revision };
      case 'JobStepped.v1':
        return { ...state, stepped: state.stepped + 1 };
      case 'JobChargeStarted.v1':
        return { ...state, isChargeStarted: true };
      case 'JobDone.v1':
        return { ...state, outcome: 'done' };
      case 'JobFailed.v1':
        return { ...state, outcome: 'failed' };
    }
  },
};

type JobReactor = Reactor<JobState, JobEvent>;

/** Each event of a job leads to its next step, and the last one to its end, unless `options` say otherwise. */
export function jobReactor(
  options: { readonly category: string; readonly worker?: string } & Partial<
    Pick<JobReactor, 'handle' | 'limits' | 'on' | 'startRevision'>
  >,
): JobReactor {
  const { category, worker = 'worker', limits = {} } = options;
  return reactor<JobState, JobEvent>({
    name: category,
    on: options.on ?? ['JobRequested.v1', 'JobStepped.v1'],
    process: { category, codec: jobEvents, fold },
    isEnded: ({ outcome }) => outcome !== null,
    ...(options.startRevision && { startRevision: options.startRevision }),
    handle: options.handle ?? ((_event, process) => [nextOf(process, worker)]),
    giveUp: (_state, { reason, lastError }) => [{ type: 'JobFailed.v1', data: { reason, error: lastError } }],
    limits: { pauseMs: { first: 10, longest: 100 }, ...limits },
  });
}

export function nextOf({ state, idempotencyKey }: Process<JobState, JobEvent>, worker: string): JobEvent {
  if (state.stepped >= state.steps) return { type: 'JobDone.v1', data: { worker } };
  return { type: 'JobStepped.v1', data: { step: state.stepped, worker, effect: idempotencyKey() } };
}

/** Appends the request of a job. @returns its id */
export async function requestJob(
  store: EventStore,
  category: string,
  steps: number,
  {
    id = newId(),
    expected = NO_EVENTS,
    organizationId = 'organization-1',
  }: { readonly id?: string; readonly expected?: StreamRevision; readonly organizationId?: string } = {},
): Promise<string> {
  const event = {
    id: newId(),
    type: 'JobRequested.v1',
    data: { steps },
    metadata: { ...logMetadata(newId()), organizationId },
  };
  const result = await store.append(`${category}-${id}`, expected, [event]);
  if (result.kind !== 'appended') throw new Error(`the job ${id} is not at revision ${expected}`);
  return id;
}
