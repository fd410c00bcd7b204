import type { Timestamp } from '#libs/kernel/clock.ts';
import type { Decision, Fold } from '#libs/kernel/decider.ts';
import { accept, refuse } from '#libs/kernel/decider.ts';
import type { StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';

import type { KeyEvent, KeyIssued, KeyScope } from './key.events.ts';

/** An API key. */
export interface Key extends KeyIssued {
  readonly organizationId: EntityId;
  readonly createdAt: Timestamp;
  readonly revokedAt: Timestamp | null;
  /** The latest successor. */
  readonly rotatedTo: EntityId | null;
  readonly graceEndsAt: Timestamp | null;
  readonly changedRevision: StreamRevision;
}

/** `null` until something happens; `withdrawn` if the key was announced and is never to be issued. */
export type KeyState = Key | 'withdrawn' | null;

export type KeyRejection =
  | { readonly reason: 'not_found' }
  | { readonly reason: 'scope_not_held'; readonly scope: KeyScope }
  /** The new key would work longer than the key that creates it, which ends at `latest`. */
  | { readonly reason: 'outlives_caller'; readonly latest: Timestamp }
  /** The user that the key belongs to does not exist in the organization, or was deactivated. */
  | { readonly reason: 'user_not_active' }
  | { readonly reason: 'not_active' }
  /** Its successor still works: that one is to be rotated, or revoked first. */
  | { readonly reason: 'rotated_already' }
  /** The key that it succeeded still works: two of a chain are the most. */
  | { readonly reason: 'two_active' }
  | { readonly reason: 'withdrawn' };

type KeyDecision = Decision<KeyEvent, KeyRejection>;

/** Whose key a command expects to find. */
export interface KeyTarget {
  readonly organizationId: EntityId;
}

/** The calling key, which manages only keys that are not stronger; or the operator of the installation. */
export type Grantor = { readonly scopes: ReadonlySet<string>; readonly expiresAtMs: number | null } | 'operator';

export const keyFold: Fold<KeyState, KeyEvent> = {
  initialState: null,
  evolve(state, event) {
    const { at, organizationId } = event.metadata;
    if (state === null) {
      if (event.type === 'KeyWithdrawn.v1') return 'withdrawn';
      if (event.type !== 'KeyIssued.v2') return state;
      return {
        ...event.data,
        organizationId,
        createdAt: at,
        revokedAt: null,
        rotatedTo: null,
        graceEndsAt: null,
        changedRevision: event.revision,
      };
    }
    if (state === 'withdrawn') return state;
    switch (event.type) {
      case 'KeyRotated.v1':
        return {
          ...state,
          rotatedTo: event.data.to,
          graceEndsAt: event.data.graceEndsAt,
          changedRevision: event.revision,
        };
      case 'KeyRevoked.v1':
        return { ...state, revokedAt: at, changedRevision: event.revision };
      default:
        return state;
    }
  },
};

/** When the key stops working by itself: its own expiry or the end of its grace, whichever is first. */
export function endOf(key: Key): Timestamp | null {
  const ends = [key.expiresAt, key.graceEndsAt].filter((end) => end !== null);
  return ends.sort()[0] ?? null;
}

/** Whether the key works at a time. Once it does not, it never does again. */
export function isActive(key: KeyState, at: Timestamp): key is Key {
  if (key === null || key === 'withdrawn' || key.revokedAt !== null) return false;
  const end = endOf(key);
  return end === null || end > at;
}

/** Issues the key. Its id follows from its secret, so one that exists is this very key. */
export function decideIssue(state: KeyState, key: KeyIssued, grantor: Grantor): KeyDecision {
  if (state === 'withdrawn') return refuse({ reason: 'withdrawn' });
  if (state !== null) return accept();
  return (
    mayManage(grantor, key) ?? mayGrantUntil(grantor, key.expiresAt) ?? accept({ type: 'KeyIssued.v2', data: key })
  );
}

export interface Rotation {
  readonly target: KeyTarget;
  readonly to: EntityId;
  readonly graceEndsAt: Timestamp | null;
  /** Expiry of the successor; undefined for that of the key. */
  readonly expiresAt?: Timestamp | null | undefined;
  readonly at: Timestamp;
  readonly grantor: Grantor;
  /**
   * Keys of the chain that are known not to work any more. They were looked up before, which is safe:
   * a key that does not work never does again.
   */
  readonly inactive: ReadonlySet<EntityId>;
}

/** Names the key's successor, which is issued next. At most two of a chain may work at a time. */
export function decideRotate(state: KeyState, rotation: Rotation): KeyDecision {
  const found = find(state, rotation.target);
  if (!found.ok) return found;
  const { key } = found;
  const { at, to, inactive, grantor } = rotation;
  if (!isActive(key, at)) return refuse({ reason: 'not_active' });
  if (key.rotatedTo !== null && !inactive.has(key.rotatedTo)) return refuse({ reason: 'rotated_already' });
  if (key.rotatedFrom !== null && !inactive.has(key.rotatedFrom)) return refuse({ reason: 'two_active' });
  // A grace that was announced is never prolonged: what has been told to end, ends.
  const graceEndsAt = earlier(rotation.graceEndsAt, key.graceEndsAt);
  return (
    mayManage(grantor, key) ??
    mayGrantUntil(grantor, expiryOfSuccessor(key, rotation)) ??
    accept({ type: 'KeyRotated.v1', data: { to, graceEndsAt } })
  );
}

/** A successor has the expiry of its predecessor, unless the rotation says otherwise. */
export function expiryOfSuccessor(key: Key, { expiresAt }: Pick<Rotation, 'expiresAt'>): Timestamp | null {
  return expiresAt === undefined ? key.expiresAt : expiresAt;
}

export function decideRevoke(state: KeyState, target: KeyTarget, by: Grantor): KeyDecision {
  const found = find(state, target);
  if (!found.ok) return found;
  const { key } = found;
  if (key.revokedAt !== null) return accept();
  return mayManage(by, key) ?? accept({ type: 'KeyRevoked.v1', data: {} });
}

/** Makes sure that a key that was announced by a rotation and not issued yet never is. */
export function decideWithdraw(state: KeyState): KeyDecision {
  return state === null ? accept({ type: 'KeyWithdrawn.v1', data: {} }) : accept();
}

type Refusal = Extract<KeyDecision, { ok: false }>;

/** Creating, rotating and revoking a key takes all of its scopes. */
function mayManage(grantor: Grantor, { scopes }: Pick<KeyIssued, 'scopes'>): Refusal | null {
  if (grantor === 'operator') return null;
  const missing = scopes.find((scope) => !grantor.scopes.has(scope));
  return missing === undefined ? null : refuse({ reason: 'scope_not_held', scope: missing });
}

/** A key that ends, by its expiry or with its grace, creates no key that works longer. */
function mayGrantUntil(grantor: Grantor, expiresAt: Timestamp | null): Refusal | null {
  if (grantor === 'operator' || grantor.expiresAtMs === null) return null;
  if (expiresAt !== null && Date.parse(expiresAt) <= grantor.expiresAtMs) return null;
  return refuse({ reason: 'outlives_caller', latest: new Date(grantor.expiresAtMs).toISOString() });
}

function earlier(one: Timestamp | null, other: Timestamp | null): Timestamp | null {
  if (one === null || other === null) return one ?? other;
  return one < other ? one : other;
}

type Found = { readonly ok: true; readonly key: Key } | Refusal;

/** Another organization's key is refused just as one that does not exist. */
function find(state: KeyState, target: KeyTarget): Found {
  if (state === null || state === 'withdrawn' || state.organizationId !== target.organizationId) {
    return refuse({ reason: 'not_found' });
  }
  return { ok: true, key: state };
}
