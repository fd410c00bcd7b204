/** Organizations, the tenants. One stream, `organization-<id>`, for each. */
export { createOrganizationBody, organizationRoutes, updateOrganizationBody } from './organization.http.ts';
export { organizationEntity, organizationReference, organizationResource, Organizations } from './organization.read.ts';
export type { OrganizationResource, UserSummary } from './organization.read.ts';
export { decideUpdate, ORGANIZATION } from './organization.ts';
export type { Organization } from './organization.ts';
