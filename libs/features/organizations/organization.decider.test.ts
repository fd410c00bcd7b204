import { describe, expect, it } from 'vitest';

import { foldEvents } from '#libs/kernel/decider.ts';
import { streamRevision } from '#libs/kernel/event.ts';

import { decideCreate, decideUpdate, organizationFold } from './organization.decider.ts';
import type { OrganizationState } from './organization.decider.ts';
import type { OrganizationEvent } from './organization.events.ts';

const acme = { id: 'organization-1', name: 'Acme', application: null, ownerUserId: null };
const created: OrganizationEvent = { type: 'OrganizationCreated.v1', data: acme };

function given(...events: OrganizationEvent[]): OrganizationState {
  const metadata = {
    at: '2026-01-31T12:00:00.000Z',
    organizationId: acme.id,
    actor: { type: 'user' as const, id: 'user-1' },
    commandId: 'command-1',
    $correlationId: 'command-1',
    $causationId: 'command-1',
  };
  return foldEvents(
    organizationFold,
    organizationFold.initialState,
    events.map((event, index) => ({ ...event, id: `${index}`, revision: streamRevision(index), metadata })),
  );
}

const nothing = { ok: true, events: [] };

describe('organizations', () => {
  it('are created once', () => {
    expect(decideCreate(given(), acme)).toEqual({ ok: true, events: [created] });
    expect(decideCreate(given(created), acme)).toEqual(nothing);
  });

  it('change only in what is given and is new', () => {
    expect(decideUpdate(given(created), { name: 'Acme', application: 'health', ownerUserId: 'user-1' })).toEqual({
      ok: true,
      events: [
        { type: 'OrganizationApplicationChanged.v1', data: { application: 'health' } },
        { type: 'OrganizationOwnerChanged.v1', data: { ownerUserId: 'user-1' } },
      ],
    });
    expect(decideUpdate(given(created), { application: null })).toEqual(nothing);
  });

  it('show every change and its revision in their state', () => {
    const state = given(created, { type: 'OrganizationRenamed.v1', data: { name: 'Emca' } });
    expect(state).toMatchObject({ id: acme.id, name: 'Emca', changedRevision: 1 });
  });

  it('cannot be changed before they exist', () => {
    expect(decideUpdate(given(), { name: 'x' })).toEqual({ ok: false, rejection: { reason: 'not_found' } });
  });
});
