/** Users, the people of an organization. One stream, `user-<id>`, for each. */
import type { Organizations } from '#libs/features/organizations/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { userRoutes } from './user.http.ts';
import { userEntity, Users, type OnDeactivated } from './user.read.ts';

export { userEntity, Users } from './user.read.ts';
export { isActiveUser, type User } from './user.ts';

interface UsersDeps {
  readonly organizations: Organizations;
  readonly onDeactivated: OnDeactivated;
}

export const usersModule = {
  name: 'users',
  projections: [userEntity.projection],
  create(core: Core, { organizations, onDeactivated }: UsersDeps) {
    const users = new Users(core, onDeactivated);
    return { users, routes: (app: HttpApp) => userRoutes(app, { users, organizations }) };
  },
} satisfies Module;
