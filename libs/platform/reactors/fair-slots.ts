import type { EntityId } from '#libs/kernel/ids.ts';

/** What a step occupies while it runs. */
export interface SlotUse {
  /** Each lane has slots of its own. */
  readonly lane: string;
  readonly organizationId: EntityId;
  /** What steps of one organization may not all use at the same time, such as a host; null for nothing. */
  readonly resource: string | null;
  /** One step of a process runs at a time: two would only be in each other's way. */
  readonly processId: EntityId;
}

export interface SlotLimits {
  /** Of one lane. */
  readonly concurrency: number;
  readonly perOrganization: number;
  /** Of one organization. */
  readonly perResource: number;
}

interface Share<Item> {
  readonly ready: Set<Item>;
  running: number;
}

interface Lane<Item> {
  running: number;
  /** In the order in which they get slots. */
  readonly shares: Map<EntityId, Share<Item>>;
}

/**
 * Decides which step a worker starts next.
 *
 * Guarantees: organizations take turns, so that one with many steps delays the next step of another one by none that is not
 * running already; and because none occupies all slots of a lane, a step of another organization starts at once, whatever the
 * running ones wait for. Within an organization, steps start in the order in which they became ready, but for those that
 * wait for their process or their resource.
 */
export class FairSlots<Item extends { readonly use: SlotUse }> {
  readonly #limits: SlotLimits;
  readonly #lanes = new Map<string, Lane<Item>>();
  readonly #processes = new Set<EntityId>();
  readonly #resources = new Map<string, number>();
  #running = 0;

  constructor(limits: SlotLimits) {
    this.#limits = limits;
  }

  /** Steps that run. */
  get running(): number {
    return this.#running;
  }

  /** The step may start. */
  add(item: Item): void {
    this.#shareOf(item).ready.add(item);
  }

  /** The step is not to be started. */
  remove(item: Item): void {
    this.#shareOf(item).ready.delete(item);
    this.#forgetIdle(item);
  }

  /** The next step to start, which occupies its slot from now on. */
  take(): Item | undefined {
    for (const lane of this.#lanes.values()) {
      const item = lane.running < this.#limits.concurrency ? this.#nextOf(lane) : undefined;
      if (item === undefined) continue;
      const { organizationId, processId } = item.use;
      const share = this.#shareOf(item);
      share.ready.delete(item);
      // To the end of the order: the next slot goes to another organization.
      lane.shares.delete(organizationId);
      lane.shares.set(organizationId, share);
      this.#count(item, lane, share, 1);
      this.#processes.add(processId);
      return item;
    }
    return undefined;
  }

  /** The step has ended. */
  release(item: Item): void {
    const lane = this.#laneOf(item);
    this.#count(item, lane, this.#shareOf(item), -1);
    this.#processes.delete(item.use.processId);
    this.#forgetIdle(item);
  }

  /** Of the organization that has the fewest slots, of several the one that got its last slot the longest ago. */
  #nextOf({ shares }: Lane<Item>): Item | undefined {
    let next: Item | undefined;
    let least = this.#limits.perOrganization;
    for (const share of shares.values()) {
      const item = share.running < least ? this.#firstOf(share) : undefined;
      if (item === undefined) continue;
      next = item;
      least = share.running;
    }
    return next;
  }

  #firstOf({ ready }: Share<Item>): Item | undefined {
    for (const item of ready) {
      const { processId } = item.use;
      if (!this.#processes.has(processId) && this.#usersOf(item) < this.#limits.perResource) return item;
    }
    return undefined;
  }

  #count(item: Item, lane: Lane<Item>, share: Share<Item>, by: 1 | -1): void {
    this.#running += by;
    lane.running += by;
    share.running += by;
    if (item.use.resource === null) return;
    const users = this.#usersOf(item) + by;
    if (users === 0) this.#resources.delete(resourceKey(item.use));
    else this.#resources.set(resourceKey(item.use), users);
  }

  #usersOf({ use }: Item): number {
    return use.resource === null ? 0 : (this.#resources.get(resourceKey(use)) ?? 0);
  }

  #laneOf({ use }: Item): Lane<Item> {
    const lane = this.#lanes.get(use.lane) ?? { running: 0, shares: new Map<EntityId, Share<Item>>() };
    this.#lanes.set(use.lane, lane);
    return lane;
  }

  #shareOf(item: Item): Share<Item> {
    const { shares } = this.#laneOf(item);
    const share = shares.get(item.use.organizationId) ?? { ready: new Set<Item>(), running: 0 };
    shares.set(item.use.organizationId, share);
    return share;
  }

  #forgetIdle(item: Item): void {
    const { ready, running } = this.#shareOf(item);
    if (ready.size === 0 && running === 0) this.#laneOf(item).shares.delete(item.use.organizationId);
  }
}

function resourceKey({ organizationId, resource }: SlotUse): string {
  return `${organizationId} ${resource}`;
}
