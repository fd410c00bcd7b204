import { describe, expect, it } from 'vitest';

import { streamRevision } from '#libs/kernel/event.ts';

import { reactionCodec } from './reaction.events.ts';
import samples from './reaction.events.samples.json' with { type: 'json' };

/** As they stand in logs out there: a sample is never changed, only added. */
describe('stored events of reactions', () => {
  it.each(Object.entries(samples))('%s is still read as it was written', (type, data) => {
    const metadata = {
      at: '2026-01-31T12:00:00.000Z',
      organizationId: 'organization-1',
      actor: { type: 'user', id: 'user-1' },
      commandId: 'command-1',
      $correlationId: 'command-1',
      $causationId: 'command-1',
    };
    const place = { stream: 'channel-1', revision: streamRevision(5), position: null, id: 'event-1', createdMs: 0 };
    expect(reactionCodec.decode({ ...place, type, data, metadata })).toMatchObject({ type, data, metadata });
  });

  it('all have a sample', () => {
    expect(Object.keys(samples).sort()).toEqual([...reactionCodec.types].sort());
  });
});
