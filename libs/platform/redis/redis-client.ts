import type { Redis } from 'ioredis';

/** One call of a Redis function: keys first, then arguments. There is a key, and all are in one slot. */
export interface FunctionCall {
  readonly name: string;
  readonly keys: readonly string[];
  readonly args: readonly (string | Buffer | number)[];
}

/** What a command came to. Errors are mapped by `redisFault`. */
export type Reply<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown };

/**
 * Redis as all of Parley sees it: one server, or the masters of a cluster. The two differ in what may be asked for in
 * one command, so this names what may.
 *
 * Guarantees: a command whose answer is lost is never sent again; one that a node has refused because the key is
 * another node's is sent to that one. A node that is away is `store_unavailable` for what lives there, at once, and
 * for nothing else; it is found again by itself, as is who takes its place.
 *
 * Omissions: no order between commands on different slots, and no moment at which keys of several slots are read
 * together.
 */
export interface RedisClient {
  /** Whether all lives on one server, which executes what it is sent in one order. */
  readonly isOneServer: boolean;

  /**
   * Sends one command, whose keys are all in the slot of `key`.
   *
   * @param command is called with the connection to use, and may be called again with another one
   * @throws `Fault` `store_unavailable`; a script or usage error as it is
   */
  send<T>(key: string, command: (node: Redis) => Promise<T>): Promise<T>;

  /**
   * The bytes of strings, null where there is none, in the order of `keys`. What lives on a node that does not answer
   * is a fault in its place. On one server, all are read at one moment.
   *
   * @throws `Fault` `store_unavailable` if nothing could be read
   */
  values(keys: readonly string[]): Promise<readonly (Buffer | null | Error)[]>;

  /** Calls functions: those of one slot in their order, what goes to one node in one write. Never rejects. */
  call(calls: readonly FunctionCall[]): Promise<readonly Reply<unknown>[]>;

  /** Loads a library of functions into every node that answers. @throws as `send`, if none does */
  loadFunctions(source: string): Promise<void>;

  /** Removes keys of any slots. @returns how many there were @throws as `send`; some may be removed */
  remove(keys: readonly string[]): Promise<number>;

  /**
   * All keys that match a pattern, in portions of about `step`; some may come twice. What moves between nodes
   * meanwhile may be missed.
   *
   * @throws as `send`
   */
  scan(match: string, step: number): AsyncIterable<readonly string[]>;

  /**
   * Asks every node that is to be there whether it answers.
   *
   * @throws `Fault` `store_unavailable` if none does
   */
  ping(): Promise<readonly { readonly node: string; readonly answers: boolean }[]>;

  /** The connections to all nodes that are to be there, for what concerns a node as a whole. */
  nodes(): readonly Redis[];

  /** Whether there is a connection to every node that is to be there. */
  readonly isReady: boolean;

  /** Calls `listener` whenever a connection to a node is there (again). @returns stops that */
  onReady(listener: () => void): () => void;

  /**
   * The connection for commands to the node that has a key, as far as is known; null if nothing is. To be duplicated
   * by whoever listens to what is published there.
   */
  nodeOf(key: string): Redis | null;

  /** Calls `listener` after {@link nodeOf} may have changed. @returns stops that */
  onMoved(listener: () => void): () => void;

  /** Looks at once where things are now: somebody has been told that something has moved. */
  refresh(): void;

  /** Ends all connections. */
  close(): void;
}
