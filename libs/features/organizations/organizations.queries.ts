import type { EntityId } from '#libs/kernel/ids.ts';
import { idOfMember, ProjectionState, readList } from '#libs/platform/readmodel/index.ts';
import type { EntityReader, ListPage } from '#libs/platform/readmodel/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import type { Organization, OrganizationState } from './organization.decider.ts';
import { ORGANIZATION } from './organization.events.ts';
import { ORGANIZATION_LIST, organizationKeys } from './organizations.keys.ts';
import { ALL_ORGANIZATIONS } from './organizations.projection.ts';

export interface OrganizationPage {
  /** Newest first. */
  readonly organizations: readonly Organization[];
  readonly total: number;
  readonly hasNext: boolean;
  /** Sort key that the next page starts after. */
  readonly last: string | null;
}

/** Reads of organizations. All throw the faults of `EntityReader`; none asks whether the caller may see them. */
export class OrganizationQueries {
  readonly #platform: Pick<Platform, 'redis' | 'readModel'>;
  readonly #reader: EntityReader;
  readonly #state: ProjectionState;

  constructor(platform: Pick<Platform, 'redis' | 'readModel'>, reader: EntityReader) {
    this.#platform = platform;
    this.#reader = reader;
    this.#state = new ProjectionState(platform.redis);
  }

  async organization(id: EntityId): Promise<Organization | null> {
    // Written by this feature's own fold, under keys that carry the version of its shape.
    return (await this.#reader.state(ORGANIZATION, id, id)) as OrganizationState;
  }

  async list(page: ListPage): Promise<OrganizationPage> {
    const { redis, readModel } = this.#platform;
    return this.#state.whileComplete(async () => {
      const { members, total, hasNext } = await readList(redis, ORGANIZATION_LIST, [ALL_ORGANIZATIONS], page);
      const snapshots = await readModel.snapshots(members.map((member) => organizationKeys(idOfMember(member))));
      const organizations = snapshots.flatMap((one) => (one === null ? [] : [one.state as Organization]));
      return { organizations, total, hasNext, last: members.at(-1) ?? null };
    });
  }
}
