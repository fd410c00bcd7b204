/** Users, the people of an organization. One stream, `user-<id>`, for each. */
export { createUserBody, updateUserBody, userRoutes } from './user.http.ts';
export { userEntity, Users } from './user.read.ts';
export type { KnownUser } from './user.read.ts';
export { decideUpdate, USER } from './user.ts';
export type { User, UserChanges, UserRejection } from './user.ts';
