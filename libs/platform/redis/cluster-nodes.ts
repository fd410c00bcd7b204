import { EventEmitter } from 'node:events';

import type { Redis } from 'ioredis';

import { hostAndPort, mapOfCluster } from './cluster-map.ts';
import type { ClusterMap, NodeAddress, NodeView } from './cluster-map.ts';

export interface ClusterNodesOptions {
  /** Where to begin; any nodes of the cluster. */
  readonly seeds: readonly NodeAddress[];
  readonly preferHostnames: boolean;
  /** Opens a connection that reconnects by itself. */
  open(host: string, port: number): Redis;
}

/** Nodes that are asked for their view at a time: two that agree would do, and any of them may be behind. */
const ASKED = 5;
/** Looks in a row are so far apart, whoever asks for them. */
const SHORTEST_PAUSE_MS = 100;
/** While a node is away, who takes its place has to be found. */
const PAUSE_WHILE_AWAY_MS = 500;
/** What moves while nobody sends anything has listeners all the same. */
const PAUSE_MS = 5_000;

const NOTHING_KNOWN: ClusterMap = { masters: new Set(), owners: [] };

/**
 * Which nodes there are, which slots they have, and a connection to each master.
 *
 * Looks again and again: now and then, soon while a connection is down, and at once when told that something moved.
 * Where no master answers, the seeds are asked again, under the names that they were given by.
 */
export class ClusterNodes {
  readonly #options: ClusterNodesOptions;
  readonly #events = new EventEmitter<{ ready: []; moved: [] }>();
  #map = NOTHING_KNOWN;
  readonly #connections = new Map<NodeAddress, Redis>();
  #timer: NodeJS.Timeout | undefined;
  #looking = false;
  #lookedAt = 0;
  #closed = false;

  constructor(options: ClusterNodesOptions) {
    this.#options = options;
    this.#events.setMaxListeners(0);
    this.#openSeeds();
    this.#lookIn(PAUSE_WHILE_AWAY_MS);
  }

  /** Whether it is known who has which slot, and all of them are connected. */
  get isReady(): boolean {
    return this.#map.masters.size > 0 && this.masters().every(({ status }) => status === 'ready');
  }

  onReady(listener: () => void): () => void {
    this.#events.on('ready', listener);
    return () => void this.#events.off('ready', listener);
  }

  onMoved(listener: () => void): () => void {
    this.#events.on('moved', listener);
    return () => void this.#events.off('moved', listener);
  }

  masters(): Redis[] {
    return [...this.#map.masters].map((address) => this.connectionTo(address));
  }

  addresses(): NodeAddress[] {
    return [...this.#map.masters];
  }

  /** Null where nobody is known to have the slot. */
  ownerOf(slot: number): NodeAddress | null {
    return this.#map.owners[slot] ?? null;
  }

  /** Opens one if there is none, which then is not ready yet. */
  connectionTo(address: NodeAddress): Redis {
    const known = this.#connections.get(address);
    if (known !== undefined) return known;
    const { host, port } = hostAndPort(address);
    const connection = this.#options.open(host, port);
    this.#connections.set(address, connection);
    connection.on('ready', () => {
      if (this.#map.masters.has(address)) this.#events.emit('ready');
      else this.refresh();
    });
    connection.on('close', () => this.refresh());
    return connection;
  }

  /** Looks at once, or as soon as the last look is not too fresh. */
  refresh(): void {
    this.#lookIn(Math.max(0, this.#lookedAt + SHORTEST_PAUSE_MS - Date.now()));
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#events.removeAllListeners();
    for (const connection of this.#connections.values()) connection.disconnect();
  }

  #lookIn(ms: number): void {
    clearTimeout(this.#timer);
    if (this.#closed) return;
    this.#timer = setTimeout(() => void this.#look(), ms);
    this.#timer.unref();
  }

  async #look(): Promise<void> {
    // The one that is under way schedules the next.
    if (this.#looking) return;
    this.#looking = true;
    this.#lookedAt = Date.now();
    try {
      const map = mapOfCluster(await this.#views(), this.#options);
      if (map.masters.size > 0 && !this.#closed) this.#adopt(map);
    } finally {
      this.#looking = false;
      this.#lookIn(this.isReady ? PAUSE_MS : PAUSE_WHILE_AWAY_MS);
    }
  }

  async #views(): Promise<NodeView[]> {
    const ready = [...this.#connections].filter(([, { status }]) => status === 'ready');
    if (ready.length === 0) this.#openSeeds();
    const asked = ready.sort(() => Math.random() - 0.5).slice(0, ASKED);
    const views = await Promise.allSettled(
      asked.map(async ([address, node]) => ({
        text: String(await node.cluster('NODES')),
        host: hostAndPort(address).host,
      })),
    );
    return views.flatMap((view) => (view.status === 'fulfilled' ? [view.value] : []));
  }

  #openSeeds(): void {
    for (const seed of this.#options.seeds) this.connectionTo(seed);
  }

  #adopt(map: ClusterMap): void {
    const before = this.#map;
    this.#map = map;
    for (const [address, connection] of this.#connections) {
      if (map.masters.has(address)) continue;
      this.#connections.delete(address);
      connection.disconnect();
    }
    for (const address of map.masters) this.connectionTo(address);
    const moved = map.owners.some((owner, slot) => owner !== before.owners[slot]);
    if (moved || before === NOTHING_KNOWN) this.#events.emit('moved');
    // Who was connected before it was known to be a master: a seed, or whom an answer had named.
    const came = [...map.masters].filter((address) => !before.masters.has(address));
    const isHeard = came.some((address) => this.connectionTo(address).status === 'ready');
    if (isHeard && (before !== NOTHING_KNOWN || this.isReady)) this.#events.emit('ready');
  }
}
