import { describe, expect, it } from 'vitest';

import { foldEvents } from '#libs/kernel/decider.ts';
import { streamRevision } from '#libs/kernel/event.ts';

import { decideCreate, decideDeactivate, decideUpdate, userFold } from './user.decider.ts';
import type { UserState } from './user.decider.ts';
import type { UserEvent } from './user.events.ts';

const organizationId = 'organization-1';
const ada = { id: 'user-1', displayName: 'Ada', email: 'ada@example.org', imageUrl: null };
const created: UserEvent = { type: 'UserCreated.v1', data: ada };
const deactivated: UserEvent = { type: 'UserDeactivated.v1', data: {} };

function given(...events: UserEvent[]): UserState {
  const metadata = {
    at: '2026-01-31T12:00:00.000Z',
    organizationId,
    actor: { type: 'user' as const, id: 'user-1' },
    commandId: 'command-1',
    $correlationId: 'command-1',
    $causationId: 'command-1',
  };
  return foldEvents(
    userFold,
    userFold.initialState,
    events.map((event, index) => ({ ...event, id: `${index}`, revision: streamRevision(index), metadata })),
  );
}

const target = { organizationId };
const nothing = { ok: true, events: [] };

describe('users', () => {
  it('are created once', () => {
    expect(decideCreate(given(), ada)).toEqual({ ok: true, events: [created] });
    expect(decideCreate(given(created), ada)).toEqual(nothing);
  });

  it('change only in what is given and is new', () => {
    expect(decideUpdate(given(created), target, { displayName: 'Ada', email: null })).toEqual({
      ok: true,
      events: [{ type: 'UserEmailChanged.v1', data: { email: null } }],
    });
    expect(decideUpdate(given(created), target, {})).toEqual(nothing);
    expect(
      decideUpdate(given(created), target, { displayName: 'Countess', imageUrl: 'https://example.org/a' }),
    ).toEqual({
      ok: true,
      events: [
        { type: 'UserRenamed.v1', data: { displayName: 'Countess' } },
        { type: 'UserImageChanged.v1', data: { imageUrl: 'https://example.org/a' } },
      ],
    });
  });

  it('are deactivated once and for good', () => {
    expect(decideDeactivate(given(created), target)).toEqual({ ok: true, events: [deactivated] });
    expect(decideDeactivate(given(created, deactivated), target)).toEqual(nothing);
    expect(decideUpdate(given(created, deactivated), target, { displayName: 'x' })).toEqual({
      ok: false,
      rejection: { reason: 'deactivated' },
    });
  });

  it('of another organization are refused as if they did not exist', () => {
    const refusal = { ok: false, rejection: { reason: 'not_found' } };
    const foreign = { organizationId: 'other' };
    expect(decideUpdate(given(created), foreign, { displayName: 'x' })).toEqual(refusal);
    expect(decideDeactivate(given(created), foreign)).toEqual(refusal);
    expect(decideDeactivate(given(), target)).toEqual(refusal);
  });
});
