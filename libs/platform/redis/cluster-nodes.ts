import { EventEmitter } from 'node:events';

import type { Redis } from 'ioredis';

import { hostAndPort, mapOfCluster, type ClusterMap, type NodeAddress, type NodeView } from './cluster-map.ts';

export interface ClusterNodesOptions {
  /** Any nodes of the cluster, asked first. */
  readonly seeds: readonly NodeAddress[];
  readonly preferHostnames: boolean;
  /** Opens a connection that reconnects. */
  open(host: string, port: number): Redis;
}

/** Nodes that are asked for their view at a time, because any of them may be outdated. */
const MAX_VIEWS = 5;
const SHORTEST_PAUSE_MS = 100;
/** While a node is away, its successor has to be found. */
const PAUSE_WHILE_AWAY_MS = 500;
/** Finds slots that moved while no command was redirected: subscriptions have to follow them. */
const PAUSE_MS = 5_000;

const NOTHING_KNOWN: ClusterMap = { masters: new Set(), owners: [] };

/**
 * The masters of a cluster, their slots, and a connection to each.
 *
 * Refreshes the map periodically, more often while a connection is down, and at once on request. If no master answers,
 * asks the seeds again, by their configured names.
 */
export class ClusterNodes {
  readonly #options: ClusterNodesOptions;
  readonly #events = new EventEmitter<{ ready: []; moved: [] }>();
  #map = NOTHING_KNOWN;
  readonly #connections = new Map<NodeAddress, Redis>();
  #timer: NodeJS.Timeout | undefined;
  #isRefreshing = false;
  #refreshedAtMs = 0;
  #closed = false;

  constructor(options: ClusterNodesOptions) {
    this.#options = options;
    this.#events.setMaxListeners(0);
    this.#openSeeds();
    this.#refreshIn(PAUSE_WHILE_AWAY_MS);
  }

  /** Whether the map is known and all masters are connected. */
  get isReady(): boolean {
    return this.#map.masters.size > 0 && this.nodes().every(({ status }) => status === 'ready');
  }

  onReady(listener: () => void): () => void {
    this.#events.on('ready', listener);
    return () => void this.#events.off('ready', listener);
  }

  onMoved(listener: () => void): () => void {
    this.#events.on('moved', listener);
    return () => void this.#events.off('moved', listener);
  }

  nodes(): Redis[] {
    return [...this.#map.masters].map((address) => this.connectionTo(address));
  }

  addresses(): NodeAddress[] {
    return [...this.#map.masters];
  }

  /** Null if no node is known to own the slot. */
  ownerOf(slot: number): NodeAddress | null {
    return this.#map.owners[slot] ?? null;
  }

  /** Opens a connection if there is none; it is not ready then. */
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

  /** Refreshes the map now, or after the shortest pause. */
  refresh(): void {
    this.#refreshIn(Math.max(0, this.#refreshedAtMs + SHORTEST_PAUSE_MS - Date.now()));
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#events.removeAllListeners();
    for (const connection of this.#connections.values()) connection.disconnect();
  }

  #refreshIn(ms: number): void {
    clearTimeout(this.#timer);
    if (this.#closed) return;
    this.#timer = setTimeout(() => void this.#run(), ms);
    this.#timer.unref();
  }

  async #run(): Promise<void> {
    // The running refresh schedules the next one.
    if (this.#isRefreshing) return;
    this.#isRefreshing = true;
    this.#refreshedAtMs = Date.now();
    try {
      const map = mapOfCluster(await this.#views(), this.#options);
      if (map.masters.size > 0 && !this.#closed) this.#adopt(map);
    } finally {
      this.#isRefreshing = false;
      this.#refreshIn(this.isReady ? PAUSE_MS : PAUSE_WHILE_AWAY_MS);
    }
  }

  async #views(): Promise<NodeView[]> {
    const ready = [...this.#connections].filter(([, { status }]) => status === 'ready');
    if (ready.length === 0) this.#openSeeds();
    const asked = ready.sort(() => Math.random() - 0.5).slice(0, MAX_VIEWS);
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
    // Nodes that were connected before they were known as masters: seeds, and targets of redirections.
    const added = [...map.masters].filter((address) => !before.masters.has(address));
    const isAnyReady = added.some((address) => this.connectionTo(address).status === 'ready');
    if (isAnyReady && (before !== NOTHING_KNOWN || this.isReady)) this.#events.emit('ready');
  }
}
