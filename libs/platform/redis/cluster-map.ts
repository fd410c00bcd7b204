/** Slots of a Redis Cluster. */
export const SLOTS = 16_384;

/** `host:port` of a node. */
export type NodeAddress = string;

/** Which node has which slot. */
export interface ClusterMap {
  /** All masters, also those without slots; but none that has failed and was relieved of its slots. */
  readonly masters: ReadonlySet<NodeAddress>;
  /** By slot; undefined where no node claims it. */
  readonly owners: readonly (NodeAddress | undefined)[];
}

/** A master, as one node of the cluster sees it. */
interface Claim {
  readonly address: NodeAddress;
  /** Goes up with every promotion: of two nodes that claim a slot, Redis itself believes the higher. */
  readonly epoch: number;
  readonly ranges: readonly (readonly [number, number])[];
}

export interface NodeView {
  /** The answer to `CLUSTER NODES`. */
  readonly text: string;
  /** The host by which the node that answered was reached: it may not know its own address. */
  readonly host: string;
}

/**
 * Puts together what several nodes say of the cluster. A node that was away may still take itself for the master
 * that it was: it is outvoted by a higher epoch.
 *
 * @param options.preferHostnames names nodes by the host names that they announce, which is what certificates are for
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
/** A node that is being met, or that nobody has an address of, is none that can be asked. */
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
    // Listed until somebody makes the cluster forget it, and nobody misses it.
    if (ranges.length === 0 && flags.includes('fail')) continue;
    claims.push({ address: `${name}:${port}`, epoch: Number(epoch), ranges });
  }
  return claims;
}

/** Slots on their way (`[93-<-…]`) still belong to whom they are listed under. */
function rangeOf(word: string): (readonly [number, number])[] {
  const [range, first, last] = RANGE.exec(word) ?? [];
  return range === undefined ? [] : [[Number(first), Number(last ?? first)]];
}

/** The host and the port of an address; an IPv6 address has colons of its own. */
export function hostAndPort(address: NodeAddress): { readonly host: string; readonly port: number } {
  const colon = address.lastIndexOf(':');
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
}
