import { describe, expect, it } from 'vitest';

import { streamRevision } from '#libs/kernel/event.ts';
import { defineEvents } from '#libs/platform/eventstore/index.ts';
import { describeStoredEvents } from '#test/support/event-samples.ts';
import { logMetadata, stateAfter } from '#test/support/log-events.ts';

import {
  decideIssue,
  decideRevoke,
  decideRotate,
  decideWithdraw,
  endOf,
  type Grantor,
  isActive,
  type Key,
  keyCodec,
  type KeyEvent,
  keyFold,
  type KeyIssued,
  keyIssuedV1,
  keyIssuedV2,
  type KeyState,
  type Rotation,
} from './key.ts';
import samples from './key.events.samples.json' with { type: 'json' };

const NOON = '2026-01-31T12:00:00.000Z';
const LATER = '2026-01-31T13:00:00.000Z';

const key: KeyIssued = {
  id: 'b',
  digest: 'b'.repeat(64),
  lastFour: 'wxyz',
  name: 'backend',
  principal: { type: 'service', id: 'backend' },
  scopes: ['read', 'admin'],
  access: 'organization',
  expiresAt: null,
  rotatedFrom: null,
};

function issued(change: Partial<KeyIssued> = {}): KeyEvent {
  return { type: 'KeyIssued.v4', data: { ...key, ...change } };
}
const revoked: KeyEvent = { type: 'KeyRevoked.v1', data: {} };
const rotated = (to: string, graceEndsAt: string | null = null): KeyEvent => ({
  type: 'KeyRotated.v1',
  data: { to, graceEndsAt },
});

const given = (...events: KeyEvent[]): KeyState => stateAfter(keyFold, events);

function givenKey(...events: KeyEvent[]): Key {
  const state = given(...events);
  if (state === null || state === 'withdrawn') throw new TypeError('the key was not issued');
  return state;
}

function rotation(change: Partial<Rotation> = {}): Rotation {
  return {
    to: 'c',
    graceEndsAt: null,
    at: NOON,
    grantor: 'operator',
    inactive: new Set(),
    ...change,
  };
}

const nothing = { ok: true, events: [] };

const calling = (...scopes: string[]): Grantor => ({ scopes: new Set(scopes), expiresAtMs: null });

describe('issuing a key', () => {
  it('issues it, once', () => {
    expect(decideIssue(given(), key, 'operator')).toEqual({ ok: true, events: [issued()] });
    expect(decideIssue(given(issued()), key, 'operator')).toEqual(nothing);
  });

  it('does not restore a revoked key', () => {
    expect(decideIssue(given(issued(), revoked), key, 'operator')).toEqual(nothing);
  });

  it('grants only scopes of the grantor', () => {
    expect(decideIssue(given(), key, calling('admin', 'read', 'write'))).toMatchObject({ ok: true });
    expect(decideIssue(given(), key, calling('admin', 'write'))).toEqual({
      ok: false,
      rejection: { reason: 'scope_not_held', scope: 'read' },
    });
  });

  it('is refused once the key was withdrawn', () => {
    const state = given({ type: 'KeyWithdrawn.v1', data: {} });
    expect(decideIssue(state, key, 'operator')).toMatchObject({ rejection: { reason: 'withdrawn' } });
  });
});

describe('rotating a key', () => {
  it('records the successor and the end of the grace period', () => {
    expect(decideRotate(givenKey(issued()), rotation({ graceEndsAt: LATER }))).toEqual({
      ok: true,
      events: [rotated('c', LATER)],
    });
  });

  it('is refused while the successor works, and possible again when it does not', () => {
    const state = givenKey(issued(), rotated('x'));
    expect(decideRotate(state, rotation())).toMatchObject({ rejection: { reason: 'rotated_already' } });
    expect(decideRotate(state, rotation({ inactive: new Set(['x']) }))).toMatchObject({ ok: true });
  });

  it('is refused while the predecessor works: three keys would work', () => {
    const state = givenKey(issued({ rotatedFrom: 'a' }));
    expect(decideRotate(state, rotation())).toMatchObject({ rejection: { reason: 'two_active' } });
    expect(decideRotate(state, rotation({ inactive: new Set(['a']) }))).toMatchObject({ ok: true });
  });

  it('does not prolong an announced grace period', () => {
    const state = givenKey(issued(), rotated('x', NOON.replace('12:', '14:')));
    const first = rotation({ graceEndsAt: LATER, inactive: new Set(['x']) });
    expect(decideRotate(state, first)).toMatchObject({ events: [rotated('c', LATER)] });
    const second = rotation({ inactive: new Set(['x']) });
    expect(decideRotate(state, second)).toMatchObject({ events: [rotated('c', NOON.replace('12:', '14:'))] });
  });

  it('is refused for a key that was revoked or has expired', () => {
    const refusal = { rejection: { reason: 'not_active' } };
    expect(decideRotate(givenKey(issued(), revoked), rotation())).toMatchObject(refusal);
    expect(decideRotate(givenKey(issued({ expiresAt: NOON })), rotation({ at: NOON }))).toMatchObject(refusal);
  });

  it('is refused to a caller that lacks a scope of the key', () => {
    const grantor = calling('admin');
    expect(decideRotate(givenKey(issued()), rotation({ grantor }))).toMatchObject({
      rejection: { reason: 'scope_not_held', scope: 'read' },
    });
  });
});

describe('revoking a key', () => {
  it('revokes it, once', () => {
    expect(decideRevoke(givenKey(issued()), 'operator')).toEqual({ ok: true, events: [revoked] });
    expect(decideRevoke(givenKey(issued(), revoked), 'operator')).toEqual(nothing);
  });

  it('requires all of its scopes', () => {
    expect(decideRevoke(givenKey(issued()), calling('admin', 'read'))).toMatchObject({ ok: true });
    expect(decideRevoke(givenKey(issued()), calling('admin', 'write'))).toEqual({
      ok: false,
      rejection: { reason: 'scope_not_held', scope: 'read' },
    });
  });
});

describe('a key that expires', () => {
  const grantor: Grantor = { scopes: new Set(key.scopes), expiresAtMs: Date.parse(LATER) };
  const tooLong = { ok: false, rejection: { reason: 'outlives_caller', latest: LATER } };
  const AFTER = '2026-01-31T13:00:00.001Z';

  it('creates no key that expires later', () => {
    expect(decideIssue(given(), { ...key, expiresAt: LATER }, grantor)).toMatchObject({ ok: true });
    expect(decideIssue(given(), { ...key, expiresAt: AFTER }, grantor)).toEqual(tooLong);
    expect(decideIssue(given(), key, grantor)).toEqual(tooLong);
  });

  it('rotates no key if the successor would expire later', () => {
    const ending = givenKey(issued({ expiresAt: LATER }));
    expect(decideRotate(ending, rotation({ grantor }))).toMatchObject({ ok: true });
    expect(decideRotate(ending, rotation({ grantor, expiresAt: AFTER }))).toEqual(tooLong);
    expect(decideRotate(ending, rotation({ grantor, expiresAt: null }))).toEqual(tooLong);
    expect(decideRotate(givenKey(issued()), rotation({ grantor }))).toEqual(tooLong);
    expect(decideRotate(givenKey(issued()), rotation({ grantor, expiresAt: LATER }))).toMatchObject({ ok: true });
  });
});

describe('withdrawing a key', () => {
  it('withdraws an announced key, and does not change an issued one', () => {
    expect(decideWithdraw(given())).toEqual({ ok: true, events: [{ type: 'KeyWithdrawn.v1', data: {} }] });
    expect(decideWithdraw(given(issued()))).toEqual(nothing);
  });
});

describe('the end of a key', () => {
  it('is its expiry or the end of its grace period, whichever comes first', () => {
    const state = givenKey(issued({ expiresAt: LATER }), rotated('c', NOON));
    expect(endOf(state)).toBe(NOON);
    expect(isActive(state, NOON)).toBe(false);
    expect(isActive(state, '2026-01-31T11:59:59.999Z')).toBe(true);
  });
});

describeStoredEvents('keys', keyCodec, samples, {
  'KeyIssued.v1': { type: 'KeyIssued.v4', data: { ...samples['KeyIssued.v1'], access: 'organization' } },
  'KeyIssued.v2': { type: 'KeyIssued.v4', data: { ...samples['KeyIssued.v2'], access: 'organization' } },
  'KeyIssued.v3': { type: 'KeyIssued.v4', data: { ...samples['KeyIssued.v3'], access: 'organization' } },
});

it('versions older than a scope skip a key that has it and do not report it as corrupt', () => {
  const olderCodec = defineEvents({ 'KeyIssued.v1': keyIssuedV1, 'KeyIssued.v2': keyIssuedV2 });
  const impersonating: KeyIssued = {
    ...samples['KeyIssued.v1'],
    principal: { type: 'service', id: 'robot' },
    access: 'organization',
    scopes: ['agent'],
  };
  const issued = decideIssue(null, impersonating, 'operator');
  expect(issued).toMatchObject({ ok: true, events: [{ type: 'KeyIssued.v4' }] });
  for (const event of issued.ok ? issued.events : []) {
    const metadata = logMetadata('command-1');
    const stored = { stream: 'key-1', revision: streamRevision(0), position: null, id: 'event-1', createdMs: 0 };
    expect(olderCodec.decode({ ...stored, type: event.type, data: keyCodec.encode(event), metadata })).toBeNull();
  }
});
