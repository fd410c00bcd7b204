/** Organizations, the tenants. One stream, `organization-<id>`, for each. */
import type { Module } from '#libs/platform/runtime/index.ts';

import { organizationEntity } from './organization.read.ts';

export { organizationRoutes } from './organization.http.ts';
export {
  organizationEntity,
  organizationReference,
  Organizations,
  organizationSummary,
  type UserSummary,
} from './organization.read.ts';

export { ORGANIZATION } from './organization.ts';

export const organizationsModule = {
  name: 'organizations',
  projections: [organizationEntity.projection],
} satisfies Module;
