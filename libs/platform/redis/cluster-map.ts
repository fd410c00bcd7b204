export const SLOTS = 16_384;

export type NodeAddress = string;

export interface ClusterMap {
  /** All masters, with and without slots, except failed ones without slots. */
  readonly masters: ReadonlySet<NodeAddress>;
  /** By slot; undefined if no node claims it. */
  readonly owners: readonly (NodeAddress | undefined)[];
}

interface Claim {
  readonly address: NodeAddress;
  /** Increases with every promotion: of two nodes that claim a slot, the one with the higher epoch owns it. */
  readonly epoch: number;
  readonly ranges: readonly (readonly [number, number])[];
}

export interface NodeView {
  /** The answer to `CLUSTER NODES`. */
  readonly text: string;
  /** The host by which the node was reached: it may not know its own address. */
  readonly host: string;
}

/**
 * Combines the views of several nodes. A node that was away may still claim slots of its successor, which has the
 * higher epoch.
 *
 * @param options.preferHostnames uses the announced host names of nodes, which certificates contain
 */
export function mapOfCluster(
  views: readonly NodeView[],
  { preferHostnames = false }: { readonly preferHostnames?: boolean } = {},
): ClusterMap {
  const masters = new Set<NodeAddress>();
  const owners: (NodeAddress | undefined)[] = Array.from({ length: SLOTS });
  const epochs = new Float64Array(SLOTS).fill(-1);
  for (const { address, epoch, ranges } of views.flatMap((view) => claimsOf(view, preferHostnames))) {
    masters.add(address);
    for (const [first, last] of ranges) {
      for (let slot = first; slot <= last && slot < SLOTS; slot++) {
        if (epoch <= (epochs[slot] ?? -1)) continue;
        epochs[slot] = epoch;
        owners[slot] = address;
      }
    }
  }
  return { masters, owners };
}

const ADDRESS = /^(.*):(\d+)(?:@\d+)?(?:,([^,]*))?/;
const RANGE = /^(\d+)(?:-(\d+))?$/;
/** Flags of nodes that cannot be connected to: the handshake has not ended, or the address is unknown. */
const UNUSABLE = new Set(['noaddr', 'handshake']);

/** Lines of `<id> <ip:port@cport,hostname> <flags> <master> <ping> <pong> <epoch> <link> <slot or range>…`. */
function claimsOf({ text, host }: NodeView, preferHostnames: boolean): Claim[] {
  const claims: Claim[] = [];
  for (const line of text.split('\n')) {
    const [, where = '', flagList = '', , , , epoch, , ...slots] = line.trim().split(' ');
    const flags = flagList.split(',');
    const [, ip = '', port = '0', hostname = ''] = ADDRESS.exec(where) ?? [];
    if (!flags.includes('master') || flags.some((flag) => UNUSABLE.has(flag)) || port === '0') continue;
    const name = preferHostnames && hostname !== '' ? hostname : ip === '' ? host : ip;
    const ranges = slots.flatMap(rangeOf);
    // Listed until an operator makes the cluster forget it.
    if (ranges.length === 0 && flags.includes('fail')) continue;
    claims.push({ address: `${name}:${port}`, epoch: Number(epoch), ranges });
  }
  return claims;
}

/** Ignores migrating slots (`[93-<-…]`), which also are in a range of their owner. */
function rangeOf(word: string): (readonly [number, number])[] {
  const [range, first, last] = RANGE.exec(word) ?? [];
  return range === undefined ? [] : [[Number(first), Number(last ?? first)]];
}

/** The host and the port of an address; an IPv6 address has colons of its own. */
export function hostAndPort(address: NodeAddress): { readonly host: string; readonly port: number } {
  const colon = address.lastIndexOf(':');
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
}
