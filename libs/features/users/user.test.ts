import { describe, expect, it } from 'vitest';

import { describeStoredEvents } from '#test/support/event-samples.ts';
import { stateAfter } from '#test/support/log-events.ts';

import { decideDeactivate, decideUpdate, type User, userCodec, type UserEvent, userFold } from './user.ts';
import samples from './user.events.samples.json' with { type: 'json' };

describeStoredEvents('users', userCodec, samples);

const ada = { id: 'user-1', displayName: 'Ada', email: 'ada@example.org', imageUrl: null };
const created: UserEvent = { type: 'UserCreated.v1', data: ada };
const deactivated: UserEvent = { type: 'UserDeactivated.v1', data: {} };

function given(...events: UserEvent[]): User {
  const state = stateAfter(userFold, events);
  if (state === null) throw new Error('these events create nothing');
  return state;
}

const nothing = { ok: true, events: [] };

describe('users', () => {
  it('change only in what is given and is new', () => {
    expect(decideUpdate(given(created), { displayName: 'Ada', email: null })).toEqual({
      ok: true,
      events: [{ type: 'UserEmailChanged.v1', data: { email: null } }],
    });
    expect(decideUpdate(given(created), {})).toEqual(nothing);
    expect(decideUpdate(given(created), { displayName: 'Countess', imageUrl: 'https://example.org/a' })).toEqual({
      ok: true,
      events: [
        { type: 'UserRenamed.v1', data: { displayName: 'Countess' } },
        { type: 'UserImageChanged.v1', data: { imageUrl: 'https://example.org/a' } },
      ],
    });
  });

  it('are deactivated once and for good', () => {
    expect(decideDeactivate(given(created))).toEqual({ ok: true, events: [deactivated] });
    expect(decideDeactivate(given(created, deactivated))).toEqual(nothing);
    expect(decideUpdate(given(created, deactivated), { displayName: 'x' })).toEqual({
      ok: false,
      rejection: { reason: 'deactivated' },
    });
  });
});
