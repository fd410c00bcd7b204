/** Organizations, the tenants. One stream, `organization-<id>`, for each. */
import type { HttpApp } from '#libs/platform/http/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { organizationRoutes } from './organization.http.ts';
import type { SummarizeUser } from './organization.http.ts';
import { organizationEntity, Organizations } from './organization.read.ts';

export { organizationEntity, organizationReference, Organizations } from './organization.read.ts';
export type { UserSummary } from './organization.read.ts';
export { ORGANIZATION } from './organization.ts';

export const organizationsModule = {
  name: 'organizations',
  projections: [organizationEntity.projection],
  create(core: Core, { summarizeUser }: { readonly summarizeUser: SummarizeUser }) {
    const organizations = new Organizations(core);
    return {
      organizations,
      routes: (app: HttpApp) => organizationRoutes(app, { organizations, summarizeUser }),
    };
  },
} satisfies Module;
