import { z } from 'zod';

import type { UserSummary } from '#libs/features/organizations/index.ts';
import { systemClock } from '#libs/kernel/clock.ts';
import { shownFields } from '#libs/kernel/fields.ts';
import { newId, type EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { Entities, entity, type EntityResult, type NotFound } from '#libs/platform/entity/index.ts';
import { shownTime } from '#libs/platform/http/index.ts';
import type { Announcements } from '#libs/platform/announcements/index.ts';
import type { Core } from '#libs/platform/runtime/index.ts';

import {
  decideDeactivate,
  isActiveUser,
  type User,
  USER,
  userCodec,
  type UserEvent,
  userFold,
  userIdOf,
  type UserState,
} from './user.ts';

type UserFacets = { readonly is_active: boolean; readonly external_id: string | null };

const userFields = shownFields<User>()({
  id: z.string(),
  organization_id: z.string(),
  display_name: z.string(),
  email: z.string().nullable(),
  external_id: [
    z.string().nullable().describe('`sub` of the tokens of the user'),
    ({ subject }) => subject?.id ?? null,
  ],
  issuer: [z.string().nullable().describe('`iss` of the tokens of the user'), ({ subject }) => subject?.issuer ?? null],
  image_url: z.string().nullable(),
  is_active: [z.boolean(), ({ deactivatedAt }) => deactivatedAt === null],
  deactivated_at: shownTime().nullable(),
  created_at: shownTime(),
  modified: shownTime(),
});
export const userSchema = z.object(userFields.shape).meta({ id: 'User' });

export const userEntity = entity<UserState, UserEvent, UserFacets>({
  category: USER,
  version: 2,
  codec: userCodec,
  fold: userFold,
  resource: userFields.resource,
  facets: (user) => ({ is_active: user.deactivatedAt === null, external_id: user.subject?.id ?? null }),
});

/** A user that a token names for the first time. */
interface UserOfIssuer {
  readonly organizationId: EntityId;
  readonly issuer: { readonly id: EntityId; readonly issuer: string };
  readonly subject: string;
  readonly displayName: string;
  readonly email: string | null;
  readonly imageUrl: string | null;
}

export class Users extends Entities<UserState, UserEvent, UserFacets> {
  readonly #announcements: Announcements;

  constructor(core: Core) {
    super(userEntity, core);
    this.#announcements = core.announcements;
  }

  async deactivate(context: CommandContext, id: EntityId): Promise<EntityResult<User, NotFound>> {
    const result = await this.update(context, id, decideDeactivate);
    const { organizationId } = context;
    // Its keys must stop working everywhere before the deactivation is answered.
    if (result.ok) await this.#announcements.announce({ kind: 'user-deactivated', organizationId, userId: id });
    return result;
  }

  /** Creates the user that an issuer knows by a subject, unless there is one, also a deactivated one. */
  async createOfIssuer({ organizationId, issuer, subject, ...profile }: UserOfIssuer): Promise<void> {
    const id = userIdOf({ organizationId, issuer: issuer.issuer, subject });
    const data = { id, ...profile, subject: { issuer: issuer.issuer, id: subject } };
    const context = {
      commandId: newId(),
      organizationId,
      actor: { type: 'service' as const, id: issuer.id },
      at: systemClock.now(),
    };
    await this.create(context, id, { type: 'UserCreated.v1', data });
  }

  /** A user that can act now: null for a missing, another organization's or a deactivated user. */
  async user(organizationId: EntityId, id: EntityId): Promise<User | null> {
    const user = await this.find(organizationId, id);
    return isActiveUser(user, organizationId) ? user : null;
  }

  /** Also of deactivated users; null for a missing user or another organization's. */
  async summary(organizationId: EntityId, id: EntityId): Promise<UserSummary | null> {
    const user = await this.find(organizationId, id);
    return user && { display_name: user.displayName, image_url: user.imageUrl ?? DEFAULT_AVATAR_URL };
  }
}

const DEFAULT_AVATAR =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><rect width="64" height="64" fill="#cbd5e1"/>' +
  '<circle cx="32" cy="25" r="11" fill="#fff"/><path d="M10 60a22 20 0 0 1 44 0z" fill="#fff"/></svg>';

/** For users without a picture; the contract names no address. A `data:` URL needs no request and is the same everywhere. */
const DEFAULT_AVATAR_URL = `data:image/svg+xml,${encodeURIComponent(DEFAULT_AVATAR)}`;
