// Answers to the events of a group: acknowledgement, retries, time-outs, and the checkpoint that follows.
import {
  PARK,
  RETRY,
  SKIP,
  START,
  STOP,
  persistentSubscriptionToStreamSettingsFromDefaults,
} from '@eventstore/db-client';
import { describe, expect, test } from 'vitest';
import { eventually } from '#test/support/eventually.ts';
import { type Delivered, useGroups } from './persistent-group.ts';
import { indexOf, range } from './support.ts';

const fast = { checkPointLowerBound: 1, checkPointUpperBound: 1, checkPointAfter: 100 };

describe('a persistent subscription to a stream', () => {
  const { store, group } = useGroups();

  describe('an event that is not acknowledged', () => {
    test('with retry is delivered again, with a higher retry count each time', async () => {
      const { connect } = await group(1);
      const { recording, subscription } = connect(1, async (event) => {
        if (event.retryCount < 3) await subscription.nack(RETRY, 'not yet', event);
        else await subscription.ack(event);
      });
      try {
        const read = await recording.delivered(4);
        expect(read.map(indexOf)).toEqual([0, 0, 0, 0]);
        expect(read.map(({ retryCount }) => retryCount)).toEqual([0, 1, 2, 3]);
      } finally {
        await recording.stop();
      }
    });

    test.each([SKIP, STOP] as const)('with %s is not delivered again, and its slot is free', async (action) => {
      const { connect, info } = await group(4);
      const { recording, subscription } = connect(1, async (event) => {
        if (indexOf(event) % 2 === 0) await subscription.nack(action, 'no', event);
        else await subscription.ack(event);
      });
      try {
        expect((await recording.delivered(4)).map(indexOf)).toEqual(range(4));
        await eventually(async () => expect((await info()).stats.totalInFlightMessages).toBe(0));
        expect(recording.events).toHaveLength(4);
        expect((await info()).stats.parkedMessageCount).toBe(0n);
      } finally {
        await recording.stop();
      }
    });

    test('is parked after as many retries as the group allows', async () => {
      const { connect, info } = await group(2, { maxRetryCount: 2 });
      const { recording, subscription } = connect(1, async (event) => {
        if (indexOf(event) === 0) await subscription.nack(RETRY, 'never', event);
        else await subscription.ack(event);
      });
      try {
        const read = await recording.delivered(4);
        expect(read.map((event) => [indexOf(event), event.retryCount])).toEqual([
          [0, 0],
          [0, 1],
          [0, 2],
          [1, 0],
        ]);
        await eventually(async () => expect((await info()).stats.parkedMessageCount).toBe(1n));
      } finally {
        await recording.stop();
      }
    });

    test('is delivered again after its timeout', async () => {
      const { connect } = await group(1, { messageTimeout: 300 });
      const { recording, subscription } = connect(1, async (event) => {
        if (event.retryCount === 2) await subscription.ack(event);
      });
      try {
        const read = await recording.delivered(3);
        expect(read.map((event) => [indexOf(event), event.retryCount])).toEqual([
          [0, 0],
          [0, 1],
          [0, 2],
        ]);
      } finally {
        await recording.stop();
      }
    });

    test('is parked after too many timeouts', async () => {
      const { connect, info } = await group(1, { messageTimeout: 200, maxRetryCount: 1 });
      const { recording } = connect(1);
      try {
        await recording.delivered(2);
        await eventually(async () => expect((await info()).stats.parkedMessageCount).toBe(1n));
        expect(recording.events).toHaveLength(2);
      } finally {
        await recording.stop();
      }
    });

    test('goes to another consumer when its own disconnects, before newer events', async () => {
      const { connect, consume } = await group(10);
      const first = connect(4);
      const delivered = await first.recording.delivered(4);
      await first.subscription.ack(...delivered.slice(0, 2));
      await first.recording.delivered(6);
      await first.recording.stop();
      const second = consume(1);
      try {
        // 2 to 5 were in flight at the first consumer; 0 and 1 are done.
        expect((await second.delivered(8)).map(indexOf)).toEqual(range(8, 2));
      } finally {
        await second.stop();
      }
    });

    test('does not block the others', async () => {
      const { connect } = await group(50);
      const kept: Delivered[] = [];
      const { recording, subscription } = connect(5, async (event) => {
        if (indexOf(event) === 3) kept.push(event);
        else await subscription.ack(event);
      });
      try {
        expect((await recording.delivered(50)).map(indexOf)).toEqual(range(50));
        expect(kept).toHaveLength(1);
      } finally {
        await recording.stop();
      }
    });
  });

  test('a mixture of acknowledgements and refusals handles every event', async () => {
    const { connect, info } = await group(90, { maxRetryCount: 10 });
    const { recording, subscription } = connect(20, async (event) => {
      const kind = indexOf(event) % 3;
      if (kind === 0) await subscription.nack(SKIP, 'skip', event);
      else if (kind === 1 && event.retryCount === 0) await subscription.nack(RETRY, 'retry', event);
      else if (kind === 2 && indexOf(event) > 80) await subscription.nack(PARK, 'park', event);
      else await subscription.ack(event);
    });
    try {
      await recording.delivered(120);
      await eventually(async () => {
        expect((await info()).stats).toMatchObject({
          totalInFlightMessages: 0,
          retryBufferCount: 0,
          parkedMessageCount: 3n,
        });
      });
      expect(recording.events).toHaveLength(120);
    } finally {
      await recording.stop();
    }
  });

  describe('the checkpoint of a group', () => {
    test('is behind the oldest event that is not handled', async () => {
      const { connect, info } = await group(10, fast);
      const { recording, subscription } = connect(10);
      try {
        const read = await recording.delivered(10);
        await subscription.ack(...read.slice(0, 4), ...read.slice(6));
        await eventually(async () => expect((await info()).stats.lastCheckpointedEventRevision).toBe(3n));
        await subscription.ack(...read.slice(4, 6));
        await eventually(async () => expect((await info()).stats.lastCheckpointedEventRevision).toBe(9n));
      } finally {
        await recording.stop();
      }
    });

    test('is where the group resumes after all its consumers were disconnected', async () => {
      const { consume, append, info } = await group(10, fast);
      const first = consume();
      await first.delivered(10);
      await eventually(async () => expect((await info()).stats.totalInFlightMessages).toBe(0));
      await first.stop();
      await append(3, 10);
      const second = consume();
      try {
        expect((await second.delivered(3)).map(indexOf)).toEqual([10, 11, 12]);
      } finally {
        await second.stop();
      }
    });

    test('survives an update of the group', async () => {
      const { stream, name, consume, append, info } = await group(10, fast);
      const first = consume();
      await first.delivered(10);
      await eventually(async () => expect((await info()).stats.lastCheckpointedEventRevision).toBe(9n));
      await first.stop();
      await store.client.updatePersistentSubscriptionToStream(
        stream,
        name,
        persistentSubscriptionToStreamSettingsFromDefaults({ ...fast, startFrom: START, maxRetryCount: 3 }),
      );
      await append(2, 10);
      const second = consume();
      try {
        expect((await second.delivered(2)).map(indexOf)).toEqual([10, 11]);
      } finally {
        await second.stop();
      }
    });
  });
});
