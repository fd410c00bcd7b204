/** Organizations, the tenants. One stream, `organization-<id>`, for each. */
export type { Organization, OrganizationChanges, OrganizationRejection } from './organization.decider.ts';
export { ORGANIZATION, organizationApplication } from './organization.events.ts';
export { OrganizationCommands } from './organizations.commands.ts';
export type { OrganizationResult } from './organizations.commands.ts';
export { organizationProjection, organizationResource } from './organizations.projection.ts';
export type { UserSummary } from './organizations.projection.ts';
export { OrganizationQueries } from './organizations.queries.ts';
export type { OrganizationPage } from './organizations.queries.ts';
export { organizationRoutes } from './organizations.routes.ts';
export type { SummarizeUser } from './organizations.routes.ts';
export { createOrganizationBody, updateOrganizationBody } from './organizations.schemas.ts';
export { PLATFORM_SCOPE, targetContext, targetOrganization } from './target-organization.ts';
