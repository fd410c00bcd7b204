import { z } from 'zod';

import type { Timestamp } from '#libs/kernel/clock.ts';
import { faultAfterWrite } from '#libs/kernel/faults.ts';
import { shownFields } from '#libs/kernel/fields.ts';
import { derivedId, type EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { Entities, entity, type EntityCore, type EntityResult, type NotFound } from '#libs/platform/entity/index.ts';
import { shownTime } from '#libs/platform/http/index.ts';
import { isActiveUser, userEntity } from '#libs/features/users/index.ts';
import { foldStream } from '#libs/platform/streams/index.ts';
import type { Announcements } from '#libs/platform/announcements/index.ts';

import { newKey, type NewKey } from './key-form.ts';
import {
  decideIssue,
  decideRevoke,
  decideRotate,
  decideWithdraw,
  endOf,
  expiryOfSuccessor,
  type Grantor,
  isActive,
  KEY,
  type Key,
  keyAccess,
  keyCodec,
  type KeyEvent,
  keyFold,
  type KeyIssued,
  type KeyRejection,
  keyScope,
  type KeyState,
} from './key.ts';

export type KeyFacets = { readonly principal_id: string; readonly is_revoked: boolean };

export const principalType = z.enum(['user', 'service']).meta({ id: 'PrincipalType' });

/** Neither the secret nor its digest. */
const keyFields = shownFields<Key>()({
  id: z.string(),
  organization_id: z.string(),
  name: z.string(),
  principal: z.object({ type: principalType, id: z.string() }),
  scopes: z.array(keyScope),
  access: keyAccess,
  last_four: z.string().describe('Last four characters of the secret'),
  created_at: shownTime(),
  expires_at: [shownTime().nullable().describe('Expiry of the key, or the end of its grace period'), endOf],
  revoked_at: shownTime().nullable(),
  rotated_from: z.string().nullable(),
  rotated_to: z.string().nullable(),
});
export const keySchema = z.object(keyFields.shape).meta({ id: 'ApiKey' });

export const keyEntity = entity<KeyState, KeyEvent, KeyFacets>({
  category: KEY,
  version: 2,
  codec: keyCodec,
  fold: keyFold,
  resource: keyFields.resource,
  facets: (key) => ({ principal_id: key.principal.id, is_revoked: key.revokedAt !== null }),
});

type KeyResult = EntityResult<Key, KeyRejection | NotFound>;

/** A new key with its secret, which is stored nowhere. */
export type NewKeyResult = (KeyResult & { readonly ok: true; readonly secret: string }) | (KeyResult & { ok: false });

/** The fields of a new key that its creator chooses. */
export type KeyDescription = Pick<KeyIssued, 'name' | 'principal' | 'scopes' | 'access' | 'expiresAt'>;

export interface RotateOptions {
  /** How long the old key still works. Default: until it is revoked. */
  readonly graceSeconds?: number | undefined;
  readonly expiresAt?: Timestamp | null | undefined;
  readonly grantor: Grantor;
}

const USER_NOT_ACTIVE = { ok: false, rejection: { reason: 'user_not_active' } } as const;

export class Keys extends Entities<KeyState, KeyEvent, KeyFacets> {
  readonly #announcements: Pick<Announcements, 'announce'>;

  constructor(core: EntityCore & { readonly announcements: Pick<Announcements, 'announce'> }) {
    super(keyEntity, core);
    this.#announcements = core.announcements;
  }

  /** @param secret of the new key, random by default; issuing the same secret again changes nothing */
  async issue(
    context: CommandContext,
    description: KeyDescription,
    grantor: Grantor,
    secret: NewKey = newKey(),
  ): Promise<NewKeyResult> {
    if (!(await this.#belongsToActive(context.organizationId, description.principal))) return USER_NOT_ACTIVE;
    return this.#issue(context, { ...description, rotatedFrom: null }, grantor, secret);
  }

  /**
   * Creates a successor with the same name, principal and scopes, and the same expiry unless another is given. The old
   * key works until it is revoked, or for `graceSeconds`. One of two concurrent rotations succeeds: the stream of the
   * old key decides.
   */
  async rotate(context: CommandContext, id: EntityId, options: RotateOptions): Promise<NewKeyResult> {
    const { at, organizationId } = context;
    const { graceSeconds = null, expiresAt, grantor } = options;
    const successor = newKey();
    const graceEndsAt = graceSeconds === null ? null : new Date(Date.parse(at) + graceSeconds * 1_000).toISOString();
    const request = { to: successor.id, graceEndsAt, expiresAt, at, grantor };

    // 1. Find the keys of the chain that no longer work. A caller that may not rotate the key changes none of them.
    const known = await this.current(context, id);
    const inactive = new Set<EntityId>();
    if (known !== null && known !== 'withdrawn' && known.organizationId === organizationId) {
      const allowed = decideRotate(known, { ...request, inactive: neighboursOf(known) });
      if (!allowed.ok) return allowed;
      if (!(await this.#belongsToActive(organizationId, known.principal))) return USER_NOT_ACTIVE;
      for (const one of await this.#inactiveNeighbours(context, known)) inactive.add(one);
    }

    // 2. Record the successor in the old key: from here on, no other one can be issued.
    const rotation = { ...request, inactive };
    const step = { ...stepOf(context, `rotate to ${successor.id}`), ifMatch: context.ifMatch };
    const old = await this.update(step, id, (key) => decideRotate(key, rotation));
    if (!old.ok) return old;
    await this.#announcements.announce({ kind: 'changed', keyId: id });

    // 3. Issue the successor. If this never happens, the next rotation withdraws it.
    const { name, principal, scopes, access } = old.entity;
    const expiry = expiryOfSuccessor(old.entity, rotation);
    const description = { name, principal, scopes, access, expiresAt: expiry, rotatedFrom: id };
    try {
      return await this.#issue(context, description, grantor, successor);
    } catch (error) {
      throw faultAfterWrite(error);
    }
  }

  /** @param by the calling key, which must have all scopes of the key */
  async revoke(context: CommandContext, id: EntityId, by: Grantor): Promise<KeyResult> {
    const result = await this.update(context, id, (key) => decideRevoke(key, by));
    if (result.ok) await this.#announcements.announce({ kind: 'revoked', keyId: id });
    return result;
  }

  async #issue(
    context: CommandContext,
    description: KeyDescription & Pick<KeyIssued, 'rotatedFrom'>,
    grantor: Grantor,
    { secret, id, digest, lastFour }: NewKey,
  ): Promise<NewKeyResult> {
    const key: KeyIssued = { id, digest, lastFour, ...description };
    const result = await this.run(stepOf(context, `issue ${id}`), id, (state) => decideIssue(state, key, grantor));
    if (!result.ok) return result;
    await this.#announcements.announce({ kind: 'changed', keyId: id });
    return { ...result, secret };
  }

  /** The key's predecessor and successor, as far as they do not work and never will. */
  async #inactiveNeighbours(context: CommandContext, { rotatedFrom, rotatedTo }: Key): Promise<Set<EntityId>> {
    const inactive = new Set<EntityId>();
    if (rotatedFrom !== null && !isActive(await this.current(context, rotatedFrom), context.at)) {
      inactive.add(rotatedFrom);
    }
    if (rotatedTo !== null) {
      const successor = await this.current(stepOf(context, `withdraw ${rotatedTo}`), rotatedTo, decideWithdraw);
      if (!isActive(successor, context.at)) inactive.add(rotatedTo);
    }
    return inactive;
  }

  /** Whether a key of the principal can work, by the log: a read model may lack the deactivation of a user. */
  async #belongsToActive(organizationId: EntityId, { type, id }: KeyIssued['principal']): Promise<boolean> {
    if (type !== 'user') return true;
    return isActiveUser(await foldStream(this.store, userEntity.projection, id), organizationId);
  }
}

/**
 * One request may write to several streams, with a command id for each. It depends on the id of the new key, because a
 * repeated request creates another secret, hence other events, which are no repetition of the first. `If-Match` is the
 * revision of one stream, so only the step that writes to it has it.
 */
function stepOf(context: CommandContext, step: string): CommandContext {
  return { ...context, commandId: derivedId(context.commandId, step), ifMatch: undefined };
}

function neighboursOf({ rotatedFrom, rotatedTo }: Key): Set<EntityId> {
  return new Set([rotatedFrom, rotatedTo].filter((id) => id !== null));
}
