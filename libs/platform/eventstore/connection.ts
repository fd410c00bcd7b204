import { EventStoreDBClient } from '@eventstore/db-client';
import { Fault } from '#libs/kernel/faults.ts';
import { guardClient, supportsBatchAppend } from './client-guard.ts';
import type { GuardedClient } from './client-guard.ts';
import { reconnectsByItself } from './client-errors.ts';

export interface ConnectionOptions {
  /** `esdb://host:port?tls=false`, or `esdb+discover://…` for a cluster. */
  readonly url: string;
  /** Hears of answers by the server that were thrown away, for the log of the process. */
  readonly onDefect?: (error: unknown) => void;
}

/**
 * How long a dead connection stays unnoticed at most: a ping after 10 s of silence (the client warns
 * about less), given up 5 s later. Calls do not wait for that, they have their own deadlines.
 */
const KEEP_ALIVE = 'keepAliveInterval=10000&keepAliveTimeout=5000';

let open: EventStoreConnection | undefined;

/** The one client of this process: its bookkeeping is shared by all clients, so there must be only one. */
export class EventStoreConnection {
  readonly #options: ConnectionOptions;
  #guarded: GuardedClient;
  #closed: Promise<void> | undefined;

  /** Connects at the first call. Errors: `Error` for a bad URL, or when another connection is open. */
  static open(options: ConnectionOptions): EventStoreConnection {
    if (open) {
      throw new Error('an event store connection is open in this process already: share it, or close it first');
    }
    open = new EventStoreConnection(options);
    return open;
  }

  private constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#guarded = newClient(options);
  }

  /** Errors: `Fault` `stopping` once the connection is closed. */
  get client(): EventStoreDBClient {
    if (this.#closed) throw new Fault('stopping', 'The event store connection is closed');
    return this.#guarded.client;
  }

  /**
   * Resolves when the server is known to take appends. Once it rejects, nothing was sent.
   *
   * The client remembers a failed question about the server's features for ever unless the failure made
   * it reconnect (a proxy that answered 500 once, say): then only a new client helps.
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

  /** Ends all calls. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#guarded.close().finally(() => {
      if (open === this) open = undefined;
    });
    return this.#closed;
  }

  #replace(broken: EventStoreDBClient): void {
    const former = this.#guarded;
    if (former.client !== broken || this.#closed) return;
    this.#guarded = newClient(this.#options);
    void former.close();
  }
}

function newClient({ url, onDefect }: ConnectionOptions): GuardedClient {
  return guardClient(connect(withSettings(url)), onDefect ?? (() => undefined));
}

/** `throwOnAppendFailure=false` makes batch appends answer wrong revisions: whatever the URL says, it is on. */
function withSettings(url: string): string {
  const separator = url.includes('?') ? '&' : '?';
  const keepAlive = /[?&]keep_?-?alive/i.test(url) ? '' : `&${KEEP_ALIVE}`;
  return `${url.trim()}${separator}throwOnAppendFailure=true${keepAlive}`;
}

function connect(url: string): EventStoreDBClient {
  if (!/^esdb(\+discover)?:\/\/[^/?]/.test(url)) {
    throw new Error('the event store URL must look like esdb://host:2113?tls=false');
  }
  try {
    return EventStoreDBClient.connectionString(url);
  } catch (error) {
    // The client quotes the URL; it may hold a password.
    const problem = String(error instanceof Error ? error.message : error).replace(/[^\s"/]*:[^\s"/]*@/g, '***@');
    // eslint-disable-next-line preserve-caught-error -- the cause would quote it, too
    throw new Error(`the event store URL is not valid: ${problem}`);
  }
}
