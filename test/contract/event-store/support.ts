// Set-up of the contract suite. With EVENTSTORE_URL the tests run against that
// server, which other programs may use at the same time: every test has its own
// stream names, and no test counts all events of the server. Without it each test
// file starts its own server.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type EventStoreDBClient,
  binaryEvent,
  jsonEvent,
  type AppendResult,
  type EventData,
  type Position,
  type ReadableSubscription,
  type ResolvedEvent,
} from '@eventstore/db-client';
import { afterAll, beforeAll } from 'vitest';
import { connectClient } from '#libs/platform/eventstore/client/connect-client.ts';
import { startSharedEventStore } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';

/**
 * Registers set-up and tear-down for the test file and gives access to its client.
 * One client per file: the client's batch bookkeeping is shared by all clients of a process.
 */
export function useEventStore(): { readonly client: EventStoreDBClient; readonly url: string } {
  let server: Awaited<ReturnType<typeof startSharedEventStore>> | undefined;
  let client: EventStoreDBClient | undefined;
  beforeAll(async () => {
    server = await startSharedEventStore();
    client = connectClient(server.url);
  }, 60_000);
  afterAll(async () => {
    // The client waits for every unfinished read, possibly without end.
    await Promise.race([client?.dispose(), delay(2_000, undefined, { ref: false })]);
    await server?.stop();
  }, 60_000);
  return {
    get client() {
      if (!client) throw new Error('the event store is used before it was started');
      return client;
    },
    get url() {
      if (!server) throw new Error('the event store is used before it was started');
      return server.url;
    },
  };
}

/** A name that no other test and no other run uses. */
export function uniqueName(prefix: string): string {
  return `${prefix}-${randomUUID()}`;
}

/**
 * Per-call credentials make the client use the unary append. Without TLS they are not sent
 * (those of the URL are). With TLS, name a valid user.
 */
export const unaryPath = {
  credentials: {
    username: process.env['EVENTSTORE_USER'] ?? 'admin',
    password: process.env['EVENTSTORE_PASSWORD'] ?? 'changeit',
  },
};

/** Both ways in which the client can append; for `describe.each`. */
export const appendPaths = [
  { path: 'batch append', options: {} },
  { path: 'unary append', options: unaryPath },
] as const;

/** `count` JSON events whose data is `{ index }`, from `firstIndex` on. */
export function numberedEvents(count: number, type = 'contract-event', firstIndex = 0): EventData[] {
  return Array.from({ length: count }, (_, i) => jsonEvent({ type, data: { index: firstIndex + i } }));
}

/** A link event to revision `revision` of `stream`. */
export function linkTo(stream: string, revision: number | bigint, metadata?: Record<string, unknown>): EventData {
  return binaryEvent({ type: '$>', data: Buffer.from(`${revision}@${stream}`), ...(metadata ? { metadata } : {}) });
}

/** Reads a finite stream to its end. */
export async function collect<T>(source: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of source) all.push(one);
  return all;
}

/** Reads until `count` items arrived, then ends the source. Fails by the test's time-out when fewer come. */
export async function take<T>(source: AsyncIterable<T>, count: number): Promise<T[]> {
  const some: T[] = [];
  for await (const one of source) {
    some.push(one);
    if (some.length === count) break;
  }
  return some;
}

/** What a promise rejects with; an error when it resolves. */
export async function rejectionOf(promise: Promise<unknown>): Promise<unknown> {
  let value: unknown;
  try {
    value = await promise;
  } catch (error) {
    return error;
  }
  throw new Error(`expected a rejection, got ${String(value)}`);
}

/** The stored event of a delivery: the link, if it is one. */
export function original(resolved: ResolvedEvent) {
  const record = resolved.link ?? resolved.event;
  if (!record) throw new Error('a delivered event has neither an event nor a link');
  return record;
}

/** The event behind a delivered one; an error when a link could not be resolved. */
export function eventOf<E extends { event?: unknown }>(resolved: E): NonNullable<E['event']> {
  if (!resolved.event) throw new Error('the delivered event has no event');
  return resolved.event;
}

/** `data.index` of events made by `numberedEvents`. */
export function indexOf(resolved: { event?: { data: unknown } }): number {
  const data = resolved.event?.data;
  if (typeof data === 'object' && data !== null && 'index' in data && typeof data.index === 'number') return data.index;
  throw new Error(`not a numbered event: ${JSON.stringify(data)}`);
}

/** The position of an append, which every supported server returns. */
export function positionOf(result: AppendResult | { position?: Position }): Position {
  if (!result.position) throw new Error('the server gave no position');
  return result.position;
}

/** 0, 1, … count - 1 */
export function range(count: number, from = 0): number[] {
  return Array.from({ length: count }, (_, i) => from + i);
}

export type Recording<E> = {
  /** The delivered events, in order. */
  readonly events: E[];
  readonly errors: Error[];
  /** `confirmation`, `event` and `caughtUp` in the order in which they happened. */
  readonly signals: string[];
  ended: boolean;
  /** Waits until `count` events were delivered; fails at once when the subscription failed. */
  delivered(count: number): Promise<E[]>;
  confirmed(): Promise<void>;
  caughtUp(): Promise<void>;
  failed(): Promise<Error>;
  stop(): Promise<void>;
};

/** Listens to a subscription from its first message on. Tests stop it in `finally`. */
export function record<E>(subscription: ReadableSubscription<E>, onEvent?: (event: E) => void): Recording<E> {
  const recording: Recording<E> = {
    events: [],
    errors: [],
    signals: [],
    ended: false,
    delivered: (count) =>
      eventually(() => {
        if (recording.errors[0]) throw recording.errors[0];
        if (recording.events.length < count) throw new Error(`${recording.events.length} of ${count} events delivered`);
        return recording.events.slice(0, count);
      }),
    confirmed: () => signal('confirmation'),
    caughtUp: () => signal('caughtUp'),
    failed: () =>
      eventually(() => {
        const [error] = recording.errors;
        if (!error) throw new Error('the subscription did not fail');
        return error;
      }),
    stop: () => subscription.unsubscribe(),
  };
  const signal = async (name: string) => {
    await eventually(() => {
      if (recording.errors[0]) throw recording.errors[0];
      if (!recording.signals.includes(name)) throw new Error(`no ${name} yet`);
    });
  };
  subscription.on('data', (event) => {
    recording.events.push(event);
    recording.signals.push('event');
    onEvent?.(event);
  });
  subscription.on('error', (error) => recording.errors.push(error));
  subscription.on('confirmation', () => recording.signals.push('confirmation'));
  subscription.on('end', () => {
    recording.ended = true;
  });
  // Only catch-up subscriptions send it.
  subscription.on('caughtUp', () => recording.signals.push('caughtUp'));
  return recording;
}
