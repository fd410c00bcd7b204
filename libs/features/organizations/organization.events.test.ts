import { describe, expect, it } from 'vitest';

import { streamRevision } from '#libs/kernel/event.ts';

import { organizationCodec } from './organization.events.ts';
import samples from './organization.events.samples.json' with { type: 'json' };

/** As they stand in logs out there: a sample is never changed, only added. */
describe('stored events of organizations', () => {
  it.each(Object.entries(samples))('%s is still read as it was written', (type, data) => {
    const metadata = {
      at: '2026-01-31T12:00:00.000Z',
      organizationId: 'organization-1',
      actor: { type: 'user', id: 'user-1' },
      commandId: 'command-1',
      $correlationId: 'command-1',
      $causationId: 'command-1',
    };
    const place = {
      stream: 'organization-1',
      revision: streamRevision(0),
      position: null,
      id: 'event-1',
      createdMs: 0,
    };
    expect(organizationCodec.decode({ ...place, type, data, metadata })).toMatchObject({ type, data, metadata });
  });

  it('all have a sample', () => {
    expect(Object.keys(samples).sort()).toEqual([...organizationCodec.types].sort());
  });
});
