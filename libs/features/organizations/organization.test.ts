import { describe, expect, it } from 'vitest';

import { describeStoredEvents } from '#test/support/event-samples.ts';
import { stateAfter } from '#test/support/log-events.ts';

import {
  decideUpdate,
  type Organization,
  organizationCodec,
  type OrganizationEvent,
  organizationFold,
} from './organization.ts';
import samples from './organization.events.samples.json' with { type: 'json' };

describeStoredEvents('organizations', organizationCodec, samples);

const acme = { id: 'organization-1', name: 'Acme', application: null, ownerUserId: null };
const created: OrganizationEvent = { type: 'OrganizationCreated.v1', data: acme };

function given(...events: OrganizationEvent[]): Organization {
  const state = stateAfter(organizationFold, events);
  if (state === null) throw new Error('these events create nothing');
  return state;
}

const nothing = { ok: true, events: [] };

describe('organizations', () => {
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
});
