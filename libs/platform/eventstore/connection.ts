import { StreamDeletedError, type EventStoreDBClient } from '@eventstore/db-client';
import type { GlobalPosition, StreamRevision } from '#libs/kernel/event.ts';
import { Fault, storeUnavailable } from '#libs/kernel/faults.ts';
import { parseEventStoreUrl, withinMemory } from '#libs/platform/config/index.ts';
import { within } from '#libs/platform/lifecycle/index.ts';
import { BatchAppends } from './client/batch-appends.ts';
import { guardClient, supportsBatchAppend, type GuardedClient } from './client/client-guard.ts';
import { connectClient } from './client/connect-client.ts';
import type { ReadRequest } from './client/read-requests.ts';
import type { ReadItem, ResolvedEvent } from './client/read-responses.ts';
import { openRead } from './client/reads.ts';
import { isMissingStream, readFault, reconnectsByItself } from './client-errors.ts';
import { ForeignEvents, type ForeignEvent } from './event-metadata.ts';
import { EventPull } from './event-pull.ts';
import { comparePositions } from './position.ts';
import { tlsProblemOf } from './tls-problem.ts';

export interface ConnectionOptions {
  /** `esdb://name:password@host:port?tls=false`, or `esdb+discover://…` for a cluster: see `connectClient`. */
  readonly url: string;
  /** Called with the errors of invalid answers to appends, which are dropped. */
  readonly onDefect?: (error: unknown) => void;
  /** Called with some of the events that are not Parley's: see `ForeignEvents`. */
  readonly onForeign?: (event: ForeignEvent, count: number) => void;
}

/** Detects a dead connection: a ping after 10 s of silence (the client warns about less), with a timeout of 5 s. */
const KEEP_ALIVE = 'keepAliveInterval=10000&keepAliveTimeout=5000';

const HEAD_DEADLINE_MS = 3000;
/** Events that a read buffers. */
const READ_AHEAD = withinMemory(256);

/** The connection to one event store. Tests open several in one process. */
export class EventStoreConnection {
  readonly #options: ConnectionOptions;
  /** What was read of other applications. */
  readonly foreign: ForeignEvents;
  #guarded: GuardedClient;
  #appends: BatchAppends;
  #closed: Promise<void> | undefined;
  /** Whether the last `ping` failed, or a server that needs TLS was never reached. */
  #tlsIsInDoubt: boolean;

  /** Connects at the first call. Errors: `Error` for a bad URL. */
  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.foreign = new ForeignEvents(options.onForeign);
    this.#guarded = this.#newClient();
    this.#appends = this.#newAppends();
    this.#tlsIsInDoubt = parseEventStoreUrl(options.url).tls;
  }

  /** Errors: `Fault` `stopping` once the connection is closed. */
  get client(): EventStoreDBClient {
    this.#checkOpen();
    return this.#guarded.client;
  }

  /** To be used once `ready` has resolved. Errors as for `client`. */
  get appends(): BatchAppends {
    this.#checkOpen();
    return this.#appends;
  }

  #checkOpen(): void {
    if (this.#closed) throw new Fault('stopping', 'The event store connection is closed');
  }

  /**
   * Resolves when the server is known to support batch appends. If it rejects, nothing was sent.
   *
   * Replaces the client after an error that does not make it reconnect (such as one 500 of a proxy): it would remember
   * the failed request for the server's features forever.
   */
  async ready(): Promise<void> {
    const { client } = this;
    try {
      if (await supportsBatchAppend(client)) return;
    } catch (error) {
      if (!reconnectsByItself(error)) this.#replace(client);
      throw error;
    }
    this.#replace(client);
    throw new Error('the server does not support batch appends: EventStoreDB 21.10 or newer is needed');
  }

  /** Position of the last event of the log, as the leader knows it; null while the log is empty. Errors: `Fault`. */
  async head(): Promise<GlobalPosition | null> {
    const last = await this.#one('backwards', 'end');
    return last?.event?.position ?? last?.link?.position ?? null;
  }

  /** Rejects while the server cannot be read, and says why if the reason is TLS. Errors: `Fault`. */
  async ping(): Promise<void> {
    // The client discovers a cluster for longer than a request waits, and keeps the reason to itself.
    const isFirst = this.#tlsIsInDoubt;
    if (isFirst) await this.#requireTls();
    try {
      await this.head();
      this.#tlsIsInDoubt = false;
    } catch (error) {
      this.#tlsIsInDoubt = true;
      if (!isFirst) await this.#requireTls();
      throw error;
    }
  }

  async #requireTls(): Promise<void> {
    const problem = await tlsProblemOf(this.#options.url);
    if (problem === null) return;
    const { why, where } = problem;
    throw storeUnavailable('the event store', new Error(`at ${where}`), `EVENTSTORE_URL: ${why}`);
  }

  /** See `LogFeed.idAt`. Errors: `Fault`. */
  async idAt(position: GlobalPosition): Promise<string | null> {
    const { event } = (await this.#one('forwards', position)) ?? {};
    return event?.position !== undefined && comparePositions(event.position, position) === 0 ? event.id : null;
  }

  /** See `LogFeed.mayHaveRemoved`. Errors: `Fault`. */
  async mayHaveRemoved(stream: string, revision: StreamRevision): Promise<boolean> {
    try {
      const read = this.client.getStreamMetadata(stream, { requiresLeader: true, deadline: HEAD_DEADLINE_MS });
      const found = await within(HEAD_DEADLINE_MS, read, () => storeUnavailable('the event store'));
      if (!('metadata' in found)) return true;
      const { truncateBefore = 0, maxAge, maxCount } = found.metadata ?? {};
      return Number(truncateBefore) > Number(revision) || maxAge !== undefined || maxCount !== undefined;
    } catch (error) {
      if (error instanceof StreamDeletedError) return true;
      throw readFault(error);
    }
  }

  async #one(direction: 'forwards' | 'backwards', from: GlobalPosition | 'end'): Promise<ResolvedEvent | undefined> {
    let found: ResolvedEvent | undefined;
    for await (const [item] of this.read({ direction, from, wanted: 1 }, { deadlineMs: HEAD_DEADLINE_MS })) {
      if (item?.kind === 'event') found = item;
    }
    return found;
  }

  /**
   * The received items of a read from the leader, one or more at a time.
   *
   * @throws `Fault`; or the error of the client that says that the stream was deleted
   */
  async *read(
    request: ReadRequest & { readonly wanted: number },
    { deadlineMs, signal }: { readonly deadlineMs: number; readonly signal?: AbortSignal | undefined },
  ): AsyncGenerator<readonly ReadItem[], void, undefined> {
    const pull = new EventPull<ReadItem>(openRead(this.client, request), READ_AHEAD, signal);
    let events = 0;
    try {
      while (!pull.ended) {
        const items = pull.take(READ_AHEAD);
        for (const { kind } of items) if (kind === 'event') events += 1;
        if (items.length > 0) yield items;
        signal?.throwIfAborted();
        if (!(await pull.wait(deadlineMs))) throw storeUnavailable('the event store');
        signal?.throwIfAborted();
      }
    } catch (error) {
      if (signal?.aborted === true) throw signal.reason;
      throw isMissingStream(error) ? error : readFault(error);
    } finally {
      pull.close(events === request.wanted);
    }
  }

  /** The items of a subscription. Errors: as for `client`; of the pull: those of the client. */
  subscribe(request: ReadRequest, readAhead: number, signal: AbortSignal): EventPull<ReadItem> {
    return new EventPull(openRead(this.client, request), readAhead, signal);
  }

  /** Ends all calls. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#guarded.close();
    return this.#closed;
  }

  #replace(broken: EventStoreDBClient): void {
    const former = this.#guarded;
    if (former.client !== broken || this.#closed) return;
    this.#guarded = this.#newClient();
    this.#appends = this.#newAppends();
    void former.close();
  }

  #newClient(): GuardedClient {
    return guardClient(connectClient(withKeepAlive(this.#options.url)));
  }

  #newAppends(): BatchAppends {
    return new BatchAppends(this.#guarded.client, this.#options.onDefect ?? (() => undefined));
  }
}

function withKeepAlive(url: string): string {
  const trimmed = url.trim();
  if (/[?&]keep_?-?alive/i.test(trimmed)) return trimmed;
  return `${trimmed}${trimmed.includes('?') ? '&' : '?'}${KEEP_ALIVE}`;
}
