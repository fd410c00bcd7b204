/** Organizations, the tenants. One stream, `organization-<id>`, for each. */
import type { EntityId } from '#libs/kernel/ids.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { organizationRoutes, type OrganizationRouteParts } from './organization.http.ts';
import { organizationEntity, Organizations } from './organization.read.ts';

export { organizationEntity, organizationReference, Organizations } from './organization.read.ts';
export type { OrganizationSummary, SummarizeUser, UserSummary } from './organization.read.ts';
export { Applications } from './applications.ts';
export { ORGANIZATION } from './organization.ts';

export const organizationsModule = {
  name: 'organizations',
  projections: [organizationEntity.projection],
  create(core: Core, parts: Omit<OrganizationRouteParts, 'organizations'>) {
    const { summarizeUser } = parts;
    const organizations = new Organizations(core);
    return {
      organizations,
      summarize: (id: EntityId) => organizations.summary(id, summarizeUser),
      routes: (app: HttpApp) => organizationRoutes(app, { ...parts, organizations }),
    };
  },
} satisfies Module;
