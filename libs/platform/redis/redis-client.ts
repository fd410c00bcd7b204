import type { Redis } from 'ioredis';

import type { Values } from './redis-faults.ts';

/** How long a command waits for its reply. It may be executed nevertheless. */
export const COMMAND_TIMEOUT_MS = 1_500;

/**
 * One call of a Redis function: keys first, then arguments. There is a key, and all are in one slot. No buffers: with one
 * of them, ioredis joins the whole call from buffers, which takes longer.
 */
export interface FunctionCall {
  readonly name: string;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

/** The outcome of a command. Errors are mapped by `redisFault`. */
export type Reply<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown };

/**
 * Port: one Redis server, or the masters of a cluster. It only offers what both support.
 *
 * Guarantees: a command is never sent again after its reply was lost; one that a node refuses because another node owns
 * the key is sent to that node. A node that is away is `store_unavailable`, at once, for its keys only; the client finds
 * it or its successor again.
 *
 * Omissions: no order between commands on different slots, and no atomic read of keys of several slots.
 */
export interface RedisClient {
  /** Whether there is one server, which executes all commands in the order of sending. */
  readonly isOneServer: boolean;

  /**
   * Sends one command, whose keys are all in the slot of `key`.
   *
   * @param command called with the connection to use, and again with another one after a redirection
   * @throws `Fault` `store_unavailable`; a script or usage error unchanged
   */
  send<T>(key: string, command: (node: Redis) => Promise<T>): Promise<T>;

  /**
   * The bytes of strings in the order of `keys`: null for a missing one, a fault for one on a node that does not answer.
   * Atomic on one server.
   *
   * @throws `Fault` `store_unavailable` if nothing could be read
   */
  values(keys: readonly string[]): Promise<Values>;

  /** Calls functions: those of one slot in order, those of one node in one write. Never rejects. */
  call(calls: readonly FunctionCall[]): Promise<readonly Reply<unknown>[]>;

  /** Loads a library of functions into every node that answers. @throws as `send`, if no node answers */
  loadFunctions(source: string): Promise<void>;

  /** Removes keys of any slots. @returns the number of removed keys @throws as `send`; some may be removed */
  remove(keys: readonly string[]): Promise<number>;

  /**
   * All keys that match a pattern, in portions of about `step`; a key may occur twice. Misses keys that move between
   * nodes meanwhile.
   *
   * @throws as `send`
   */
  scan(match: string, step: number): AsyncIterable<readonly string[]>;

  /**
   * Pings every known node.
   *
   * @throws `Fault` `store_unavailable` if no node answers
   */
  ping(): Promise<readonly { readonly node: string; readonly answers: boolean }[]>;

  /** The connections to all known nodes, for commands on a node as a whole. */
  nodes(): readonly Redis[];

  /** Whether every known node is connected. */
  readonly isReady: boolean;

  /** Calls `listener` whenever a node is connected (again). @returns a function that removes the listener */
  onReady(listener: () => void): () => void;

  /**
   * The command connection of the node that owns a key; null if it is unknown. Subscribers use a duplicate of the
   * connection.
   */
  nodeOf(key: string): Redis | null;

  /** Calls `listener` after {@link nodeOf} may have changed. @returns a function that removes the listener */
  onMoved(listener: () => void): () => void;

  /** Refreshes the map of the cluster, after a sign that slots have moved. */
  refresh(): void;

  close(): void;
}
