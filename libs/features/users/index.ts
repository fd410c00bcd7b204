/** Users, the people of an organization. One stream, `user-<id>`, for each. */
export type { User, UserChanges, UserRejection } from './user.decider.ts';
export { USER } from './user.events.ts';
export { UserCommands } from './users.commands.ts';
export type { UserCommandsOptions, UserResult } from './users.commands.ts';
export { userProjection, userResource } from './users.projection.ts';
export { UserQueries } from './users.queries.ts';
export type { KnownUser } from './users.queries.ts';
export { userRoutes } from './users.routes.ts';
export { createUserBody, organizationReference, updateUserBody } from './users.schemas.ts';
