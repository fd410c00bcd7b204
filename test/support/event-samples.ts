import { describe, expect, it } from 'vitest';

import { type DomainEvent, streamRevision } from '#libs/kernel/event.ts';
import type { EventCodec } from '#libs/platform/eventstore/index.ts';

import { logMetadata } from './log-events.ts';

/**
 * Declares the tests of a feature's stored events. A sample is the data of an event as existing logs hold it, by
 * type. Samples are only added, never changed, and every type has one.
 * @param upcasts what the codec makes of the samples of older versions, by their types
 */
export function describeStoredEvents<E extends DomainEvent>(
  of: string,
  codec: EventCodec<E>,
  samples: Readonly<Record<string, unknown>>,
  upcasts: Readonly<Record<string, { readonly type: string; readonly data: unknown }>> = {},
): void {
  describe(`stored events of ${of}`, () => {
    it.each(Object.entries(samples))('the codec still reads %s as it was written', (type, data) => {
      const metadata = logMetadata('command-1');
      const place = { stream: `${of}-1`, revision: streamRevision(0), position: null, id: 'event-1', createdMs: 0 };
      expect(codec.decode({ ...place, type, data, metadata })).toMatchObject({
        ...(upcasts[type] ?? { type, data }),
        metadata,
      });
    });

    it('all have a sample', () => {
      expect(Object.keys(samples).sort()).toEqual([...codec.types].sort());
    });
  });
}
