import { listMember } from '#libs/platform/readmodel/index.ts';
import type { Projection } from '#libs/platform/readmodel/index.ts';

import { organizationFold } from './organization.decider.ts';
import type { Organization, OrganizationState } from './organization.decider.ts';
import { ORGANIZATION, organizationCodec } from './organization.events.ts';
import type { OrganizationEvent } from './organization.events.ts';
import { ORGANIZATION_LIST } from './organizations.keys.ts';

export const ALL_ORGANIZATIONS = 'all';

/**
 * Organizations are read by their state, not as ready bytes: the answer shows the owner, who changes in a
 * stream of its own.
 */
export const organizationProjection: Projection<OrganizationState, OrganizationEvent> = {
  category: ORGANIZATION,
  codec: organizationCodec,
  fold: organizationFold,
  project({ id, after }) {
    if (after === null) return { operations: [], lists: [] };
    return {
      operations: [],
      lists: [{ list: ORGANIZATION_LIST, member: listMember(after.createdAt, id), facets: [ALL_ORGANIZATIONS] }],
    };
  },
};

/** A user in short (contract, section 2.3). */
export interface UserSummary {
  readonly display_name: string;
  readonly image_url: string;
}

/** The organization as the API answers it: the contract's summary (section 2.3) and what administration needs. */
export function organizationResource(organization: Organization, owner: UserSummary | null): object {
  return {
    id: organization.id,
    name: organization.name,
    owner,
    application: organization.application,
    owner_id: organization.ownerUserId,
    created_at: organization.createdAt,
    modified: organization.modified,
  };
}
