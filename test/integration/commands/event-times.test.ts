/* Times of events never decrease within a stream, whatever the clocks of the appending processes show. */
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import { type EventStore, StoreClock } from '#libs/platform/eventstore/index.ts';
import { composeFeatures } from '#services/features.ts';
import { randomFrom } from '#test/support/channel-history.ts';
import { PLAIN_CHANNEL, serviceCommand } from '#test/support/commands.ts';
import { readLog } from '#test/support/log-reader.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';

const START_MS = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;
const organizationId = newId();

let test: TestPlatform;
beforeAll(async () => {
  test = await startTestPlatform();
});
afterAll(() => test.stop());

type Commands = ReturnType<typeof composeFeatures>['channels'];

const gateway = (store: EventStore = test.platform.store): Commands =>
  composeFeatures({ ...test.platform, store, clock: new StoreClock(store) }).channels;
const commandAt = (timeMs: number) => serviceCommand(organizationId, { at: new Date(timeMs).toISOString() });

async function createChannel(commands: Commands, timeMs: number): Promise<string> {
  const command = commandAt(timeMs);
  const created = await commands.create(command, { id: command.commandId, ...PLAIN_CHANNEL });
  expect(created.ok).toBe(true);
  return command.commandId;
}

async function timesIn(channelId: string): Promise<number[]> {
  return (await readLog(test.eventStore.url, `channel-${channelId}`)).map(({ metadata }) =>
    Date.parse(String(metadata['at'])),
  );
}

describe('times of events in a stream', () => {
  it('never decrease, though the clocks of three gateways differ by hours and they write at once', async () => {
    const random = randomFrom(11);
    const gateways = [gateway(), gateway(), gateway()];
    const skewsMs = [0, -HOUR_MS, 7_000];
    const channelId = await createChannel(gateway(), START_MS);
    for (let round = 0; round < 20; round++) {
      await Promise.all(
        gateways.flatMap((commands, index) =>
          Array.from({ length: 1 + random(4) }, (_, at) => {
            const timeMs = START_MS + round * 1_000 + (skewsMs[index] ?? 0) - random(300);
            return commands.update(commandAt(timeMs), channelId, { name: `${round} ${index} ${at}` });
          }),
        ),
      );
    }
    const times = await timesIn(channelId);
    expect(times.length).toBeGreaterThan(60);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(times.at(-1)).toBe(Math.max(...times));
    expect(new Set(times).size).toBeGreaterThan(10);
  });

  it('do not decrease after a gateway with empty memory has read a snapshot', async () => {
    const channelId = await createChannel(gateway(), START_MS);
    await gateway().update(commandAt(START_MS + 5_000), channelId, { name: 'last' });
    const renamed = await gateway().update(commandAt(START_MS + 1_000), channelId, { name: 'earlier clock' });
    expect(renamed.ok && renamed.entity.modified).toBe(new Date(START_MS + 5_000).toISOString());
    await gateway().update(commandAt(START_MS + 6_000), channelId, { name: 'later clock' });
    expect(await timesIn(channelId)).toEqual([0, 5_000, 5_000, 6_000].map((ms) => START_MS + ms));
  });
});

describe('a process whose clock is ahead of the event store', () => {
  /** The store as seen by a process whose clock is an hour ahead. */
  const behindAnHour = (): EventStore => ({
    append: (...args) => test.platform.store.append(...args),
    async *readStream(...args) {
      for await (const event of test.platform.store.readStream(...args)) {
        yield { ...event, createdMs: event.createdMs - HOUR_MS };
      }
    },
    ping: () => test.platform.store.ping(),
    close: () => test.platform.store.close(),
  });

  it('corrects its times by the measured skew, once it has read back an event of its own', async () => {
    const commands = gateway(behindAnHour());
    const nowMs = Date.now();
    await createChannel(commands, nowMs);
    await expect
      .poll(async () => {
        const [time = 0] = await timesIn(await createChannel(commands, nowMs));
        return Math.abs(time - (nowMs - HOUR_MS));
      })
      .toBeLessThan(5_000);
  });

  describe('after its skew was measured', () => {
    afterEach(() => {
      vi.restoreAllMocks();
      vi.useRealTimers();
    });

    async function measured(): Promise<{
      readonly clock: StoreClock;
      readonly features: ReturnType<typeof composeFeatures>;
    }> {
      const store = behindAnHour();
      const clock = new StoreClock(store);
      const features = composeFeatures({ ...test.platform, store, clock });
      await createChannel(features.channels, Date.now());
      await expect.poll(() => Math.abs((clock.nowMs ?? 0) - (Date.now() - HOUR_MS))).toBeLessThan(5_000);
      return { clock, features };
    }
    const at = '2026-01-01T01:00:00.000Z';

    it('corrects the times of all its command handlers', async () => {
      const { features } = await measured();
      const command = commandAt(Date.now());
      const data = { id: command.commandId, displayName: 'Ada', email: null, imageUrl: null };
      expect(await features.users.create(command, command.commandId, { type: 'UserCreated.v1', data })).toMatchObject({
        ok: true,
      });
      const [created] = await readLog(test.eventStore.url, `user-${command.commandId}`);
      expect(Date.parse(String(created?.metadata['at']))).toBeLessThan(Date.now() - HOUR_MS / 2);
    });

    it('stops to correct its times when the clock is set, until it has measured again', async () => {
      const { clock, features } = await measured();
      expect(clock.corrected(at)).not.toBe(at);
      vi.useFakeTimers({ toFake: ['Date'] });
      vi.setSystemTime(Date.now() + 3_000);
      expect([clock.nowMs, clock.corrected(at)]).toEqual([null, at]);
      await createChannel(features.channels, Date.now());
      await expect.poll(() => clock.nowMs).not.toBeNull();
    });

    it('stops to correct its times two minutes later', async () => {
      const { clock } = await measured();
      const [dateMs, monotonicMs] = [Date.now(), performance.now()];
      expect(clock.corrected(at)).not.toBe(at);
      const later = (ms: number) => {
        vi.spyOn(Date, 'now').mockReturnValue(dateMs + ms);
        vi.spyOn(performance, 'now').mockReturnValue(monotonicMs + ms);
      };
      later(90_000);
      expect(clock.corrected(at)).not.toBe(at);
      later(130_000);
      expect([clock.nowMs, clock.corrected(at)]).toEqual([null, at]);
    });
  });

  it('keeps its times while its skew is within the usual', async () => {
    const commands = gateway();
    for (let round = 0; round < 3; round++) {
      const channelId = await createChannel(commands, START_MS + round);
      expect(await timesIn(channelId)).toEqual([START_MS + round]);
    }
  });
});
