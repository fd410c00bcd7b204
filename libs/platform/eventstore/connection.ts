import type { EventStoreDBClient } from '@eventstore/db-client';
import { Fault } from '#libs/kernel/faults.ts';
import { guardClient, supportsBatchAppend } from './client-guard.ts';
import type { GuardedClient } from './client-guard.ts';
import { connectClient } from './connect-client.ts';
import { reconnectsByItself } from './client-errors.ts';

export interface ConnectionOptions {
  /** `esdb://name:password@host:port?tls=false`, or `esdb+discover://…` for a cluster: see `connectClient`. */
  readonly url: string;
  /** Hears of answers by the server that were thrown away, for the log of the process. */
  readonly onDefect?: (error: unknown) => void;
}

/**
 * How long a dead connection stays unnoticed at most: a ping after 10 s of silence (the client warns
 * about less), given up 5 s later. Calls do not wait for that, they have their own deadlines.
 */
const KEEP_ALIVE = 'keepAliveInterval=10000&keepAliveTimeout=5000';

const open = new Set<EventStoreConnection>();

/**
 * A process has one, unless it holds several Parleys, as tests do. Clients share the table of their unanswered
 * appends: see {@link unanswered}.
 */
export class EventStoreConnection {
  readonly #options: ConnectionOptions;
  /** What ends the wait of each append that has no answer yet. */
  readonly #waiting = new Set<(error: unknown) => void>();
  #guarded: GuardedClient;
  #closed: Promise<void> | undefined;

  /** Connects at the first call. Errors: `Error` for a bad URL. */
  static open(options: ConnectionOptions): EventStoreConnection {
    const connection = new EventStoreConnection(options);
    open.add(connection);
    return connection;
  }

  private constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#guarded = this.#newClient();
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

  /**
   * An append that was just sent, which also ends when the stream breaks on which it went. The client would say so
   * by its table, of which it knows one for all clients: it would fail the appends of every Parley of the process.
   */
  unanswered<T>(append: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#waiting.add(reject);
      void append.then(resolve, reject).finally(() => this.#waiting.delete(reject));
    });
  }

  /** Ends all calls. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#guarded.close().finally(() => open.delete(this));
    return this.#closed;
  }

  #replace(broken: EventStoreDBClient): void {
    const former = this.#guarded;
    if (former.client !== broken || this.#closed) return;
    this.#guarded = this.#newClient();
    void former.close();
  }

  #newClient(): GuardedClient {
    const { url, onDefect = () => undefined } = this.#options;
    return guardClient(connectClient(withSettings(url)), {
      onDefect,
      isAlone: () => open.size <= 1,
      onBroken: (error) => {
        for (const fail of this.#waiting) fail(error);
        this.#waiting.clear();
      },
    });
  }
}

/** `throwOnAppendFailure=false` makes batch appends answer wrong revisions: whatever the URL says, it is on. */
function withSettings(url: string): string {
  const separator = url.includes('?') ? '&' : '?';
  const keepAlive = /[?&]keep_?-?alive/i.test(url) ? '' : `&${KEEP_ALIVE}`;
  return `${url.trim()}${separator}throwOnAppendFailure=true${keepAlive}`;
}
