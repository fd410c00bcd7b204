/*
 * WARNING: event names and shapes are the storage format: written events stay in the log forever. Never change a type in
 * place: a new version is a new type, and the old one gets an upcaster.
 */
import { z } from 'zod';

import type { Timestamp } from '#libs/kernel/clock.ts';
import { accept, refuse, type Decision, type Fold } from '#libs/kernel/decider.ts';
import { changedBy, createdBy, type EntityState } from '#libs/kernel/entity.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { defineEvents, upcast, type EventOf } from '#libs/platform/eventstore/index.ts';

/** Category of the streams, `key-<id>`. The id is derived from the secret: see `key-form.ts`. */
export const KEY = 'key';

/**
 * Permissions of a key. `read` and `write`: the API; `impersonate`: act as other principals than its own; `agent`: answer
 * as the external agent whose id is that of its service; `admin`: users and keys of the own organization; `platform`: all
 * organizations. No scope includes another one.
 */
export const keyScope = z.enum(['read', 'write', 'impersonate', 'agent', 'admin', 'platform']).meta({ id: 'KeyScope' });
export type KeyScope = z.infer<typeof keyScope>;

const keyPrincipal = z.object({ type: z.enum(['user', 'service']), id: z.string() });

/** Frozen: the schema before the scope `impersonate`. */
export const keyIssuedV1 = z.object({
  id: z.string(),
  digest: z.string(),
  lastFour: z.string(),
  name: z.string(),
  principal: z.object({ type: z.enum(['user', 'service']), id: z.string() }),
  scopes: z.array(z.enum(['read', 'write', 'admin', 'platform'])),
  expiresAt: z.string().nullable(),
  rotatedFrom: z.string().nullable(),
});

/** Frozen: the schema before the scope `agent`. */
export const keyIssuedV2 = z.object({
  ...keyIssuedV1.shape,
  scopes: z.array(z.enum(['read', 'write', 'impersonate', 'admin', 'platform'])),
});

/** Frozen: the schema before keys could be limited to participation. */
const keyIssuedV3 = z.object({
  ...keyIssuedV1.shape,
  scopes: z.array(z.enum(['read', 'write', 'impersonate', 'agent', 'admin', 'platform'])),
});

/** The sight of a key: its whole organization, or the channels in which its user takes part. */
export const keyAccess = z.enum(['organization', 'participation']).meta({ id: 'KeyAccess' });

export const keyCodec = defineEvents(
  {
    // A new type, because versions that ignore `access` would take a limited key for one of the organization.
    'KeyIssued.v4': z.object({
      id: z.string(),
      /** SHA-256 of the secret in hex. */
      digest: z.string(),
      /** Last characters of the secret, which identify it to its owner. */
      lastFour: z.string(),
      name: z.string(),
      principal: keyPrincipal,
      scopes: z.array(keyScope),
      access: keyAccess,
      expiresAt: z.string().nullable(),
      rotatedFrom: z.string().nullable(),
    }),
    /** The key has a successor, and still works until it is revoked or until `graceEndsAt`. */
    'KeyRotated.v1': z.object({ to: z.string(), graceEndsAt: z.string().nullable() }),
    'KeyRevoked.v1': z.object({}),
    /** The only event of its stream: a rotation announced this key and did not issue it. It can no longer be issued. */
    'KeyWithdrawn.v1': z.object({}),
  },
  {
    upcasters: {
      'KeyIssued.v1': upcast(keyIssuedV1, ofOrganization),
      'KeyIssued.v2': upcast(keyIssuedV2, ofOrganization),
      'KeyIssued.v3': upcast(keyIssuedV3, ofOrganization),
    },
  },
);

function ofOrganization(data: z.output<typeof keyIssuedV3>) {
  return { type: 'KeyIssued.v4' as const, data: { ...data, access: 'organization' as const } };
}

export type KeyEvent = EventOf<typeof keyCodec>;
export type KeyIssued = Extract<KeyEvent, { type: 'KeyIssued.v4' }>['data'];

/** An API key. */
export type Key = KeyIssued &
  EntityState & {
    readonly revokedAt: Timestamp | null;
    /** The latest successor. */
    readonly rotatedTo: EntityId | null;
    readonly graceEndsAt: Timestamp | null;
  };

/** `null` before the first event; `withdrawn` if the key was announced and can no longer be issued. */
export type KeyState = Key | 'withdrawn' | null;

export type KeyRejection =
  | { readonly reason: 'scope_not_held'; readonly scope: KeyScope }
  /** The new key would work longer than the key that creates it, which ends at `latest`. */
  | { readonly reason: 'outlives_caller'; readonly latest: Timestamp }
  /** The user that the key belongs to does not exist in the organization, or was deactivated. */
  | { readonly reason: 'user_not_active' }
  | { readonly reason: 'not_active' }
  /** Its successor still works: rotate that one, or revoke it first. */
  | { readonly reason: 'rotated_already' }
  /** Its predecessor still works: at most two keys of a chain work at a time. */
  | { readonly reason: 'two_active' }
  | { readonly reason: 'withdrawn' };

type KeyDecision = Decision<KeyEvent, KeyRejection>;

/** The calling key, which manages only keys that are not stronger; or the operator of the installation. */
export type Grantor = { readonly scopes: ReadonlySet<string>; readonly expiresAtMs: number | null } | 'operator';

export const keyFold: Fold<KeyState, KeyEvent> = {
  initialState: null,
  evolve(state, event) {
    if (state === null) {
      if (event.type === 'KeyWithdrawn.v1') return 'withdrawn';
      if (event.type !== 'KeyIssued.v4') return state;
      return { ...event.data, ...createdBy(event), revokedAt: null, rotatedTo: null, graceEndsAt: null };
    }
    if (state === 'withdrawn') return state;
    const changed = { ...state, ...changedBy(event) };
    switch (event.type) {
      case 'KeyRotated.v1':
        return { ...changed, rotatedTo: event.data.to, graceEndsAt: event.data.graceEndsAt };
      case 'KeyRevoked.v1':
        return { ...changed, revokedAt: changed.modified };
      default:
        return state;
    }
  },
};

/** When the key stops working without a revocation: its expiry or the end of its grace period, whichever is first. */
export function endOf(key: Key): Timestamp | null {
  const ends = [key.expiresAt, key.graceEndsAt].filter((end) => end !== null);
  return ends.sort()[0] ?? null;
}

/** Whether the key works at a time. A key that does not work never works again. */
export function isActive(key: KeyState, at: Timestamp): key is Key {
  if (key === null || key === 'withdrawn' || key.revokedAt !== null) return false;
  const end = endOf(key);
  return end === null || end > at;
}

/** Issues the key. Its id is derived from its secret, so an existing key of this id is the same key. */
export function decideIssue(state: KeyState, key: KeyIssued, grantor: Grantor): KeyDecision {
  if (state === 'withdrawn') return refuse({ reason: 'withdrawn' });
  if (state !== null) return accept();
  return (
    mayManage(grantor, key) ?? mayGrantUntil(grantor, key.expiresAt) ?? accept({ type: 'KeyIssued.v4', data: key })
  );
}

export interface Rotation {
  readonly to: EntityId;
  readonly graceEndsAt: Timestamp | null;
  /** Expiry of the successor; undefined for the expiry of the key. */
  readonly expiresAt?: Timestamp | null | undefined;
  readonly at: Timestamp;
  readonly grantor: Grantor;
  /**
   * Keys of the chain that do not work. They were looked up before, which is safe: a key that does not work never works
   * again.
   */
  readonly inactive: ReadonlySet<EntityId>;
}

/** Records the key's successor, which is issued next. At most two keys of a chain may work at a time. */
export function decideRotate(key: Key, rotation: Rotation): KeyDecision {
  const { at, to, inactive, grantor } = rotation;
  if (!isActive(key, at)) return refuse({ reason: 'not_active' });
  if (key.rotatedTo !== null && !inactive.has(key.rotatedTo)) return refuse({ reason: 'rotated_already' });
  if (key.rotatedFrom !== null && !inactive.has(key.rotatedFrom)) return refuse({ reason: 'two_active' });
  // An announced grace period is never prolonged.
  const graceEndsAt = earlier(rotation.graceEndsAt, key.graceEndsAt);
  return (
    mayManage(grantor, key) ??
    mayGrantUntil(grantor, expiryOfSuccessor(key, rotation)) ??
    accept({ type: 'KeyRotated.v1', data: { to, graceEndsAt } })
  );
}

/** A successor has the expiry of its predecessor, unless the rotation sets one. */
export function expiryOfSuccessor(key: Key, { expiresAt }: Pick<Rotation, 'expiresAt'>): Timestamp | null {
  return expiresAt === undefined ? key.expiresAt : expiresAt;
}

export function decideRevoke(key: Key, by: Grantor): KeyDecision {
  if (key.revokedAt !== null) return accept();
  return mayManage(by, key) ?? accept({ type: 'KeyRevoked.v1', data: {} });
}

/** Ensures that a key that a rotation announced and did not issue is never issued. */
export function decideWithdraw(state: KeyState): Decision<KeyEvent, never> {
  return state === null ? accept({ type: 'KeyWithdrawn.v1', data: {} }) : accept();
}

type Refusal = Extract<KeyDecision, { ok: false }>;

/** Creating, rotating and revoking a key requires all of its scopes. */
function mayManage(grantor: Grantor, { scopes }: Pick<KeyIssued, 'scopes'>): Refusal | null {
  if (grantor === 'operator') return null;
  const missing = scopes.find((scope) => !grantor.scopes.has(scope));
  return missing === undefined ? null : refuse({ reason: 'scope_not_held', scope: missing });
}

/** A key with an expiry or a grace period creates no key that works longer. */
function mayGrantUntil(grantor: Grantor, expiresAt: Timestamp | null): Refusal | null {
  if (grantor === 'operator' || grantor.expiresAtMs === null) return null;
  if (expiresAt !== null && Date.parse(expiresAt) <= grantor.expiresAtMs) return null;
  return refuse({ reason: 'outlives_caller', latest: new Date(grantor.expiresAtMs).toISOString() });
}

function earlier(one: Timestamp | null, other: Timestamp | null): Timestamp | null {
  if (one === null || other === null) return one ?? other;
  return one < other ? one : other;
}
