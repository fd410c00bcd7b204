/** Users, the people of an organization. One stream, `user-<id>`, for each. */
import type { Module } from '#libs/platform/runtime/index.ts';

import { userEntity } from './user.read.ts';

export { userRoutes } from './user.http.ts';
export { userEntity, Users } from './user.read.ts';
export { isActiveUser, type User, userIdOf } from './user.ts';

export const usersModule = { name: 'users', projections: [userEntity.projection] } satisfies Module;
