import { expect, it } from 'vitest';

import { streamRevision } from '#libs/kernel/event.ts';
import { defineEvents } from '#libs/platform/eventstore/index.ts';
import { describeStoredEvents } from '#test/support/event-samples.ts';
import { logMetadata } from '#test/support/log-events.ts';

import { decideIssue } from './key.decider.ts';
import { keyIssuedV1 } from './key.events.history.ts';
import { keyCodec } from './key.events.ts';
import type { KeyIssued } from './key.events.ts';
import samples from './key.events.samples.json' with { type: 'json' };

describeStoredEvents('keys', keyCodec, samples, {
  'KeyIssued.v1': { type: 'KeyIssued.v2', data: samples['KeyIssued.v1'] },
});

it('versions from before the scope impersonate skip a key that has it, instead of finding it corrupt', () => {
  const olderCodec = defineEvents({ 'KeyIssued.v1': keyIssuedV1 });
  const key: KeyIssued = {
    ...samples['KeyIssued.v1'],
    principal: { type: 'service', id: 'robot' },
    scopes: ['impersonate'],
  };
  const issued = decideIssue(null, key, 'operator');
  expect(issued).toMatchObject({ ok: true, events: [{ type: 'KeyIssued.v2' }] });
  for (const event of issued.ok ? issued.events : []) {
    const metadata = logMetadata('command-1');
    const place = { stream: 'key-1', revision: streamRevision(0), position: null, id: 'event-1', createdMs: 0 };
    expect(olderCodec.decode({ ...place, type: event.type, data: keyCodec.encode(event), metadata })).toBeNull();
  }
});
