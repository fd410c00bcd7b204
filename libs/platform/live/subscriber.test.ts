import { expect, it } from 'vitest';

import type { Grant } from './access.ts';
import { Subscriber } from './subscriber.ts';

/** Records its pings and checks. */
class Pinged extends Subscriber {
  readonly format = 'websocket';
  readonly include = 0;
  readonly isOpen = true;
  readonly unsentBytes = 0;
  readonly grant: Grant = {
    organizationId: 'o',
    channelId: 'c',
    principalType: 'user',
    principalId: 'u',
    keyId: 'k',
    scopes: [],
    takesPart: false,
    isMember: false,
    expiresAtMs: null,
  };
  readonly pings: number[] = [];
  readonly checks: number[] = [];
  readonly #now: () => number;

  constructor(now: () => number) {
    super();
    this.#now = now;
  }

  ping(): void {
    this.pings.push(this.#now());
  }

  checkPong(): void {
    this.checks.push(this.#now());
  }

  write(): void {}
  caughtUp(): void {}
  close(): void {}
  destroy(): void {}
  drained = (): Promise<void> => Promise.resolve();
  closed = (): Promise<void> => Promise.resolve();
}

it('is pinged once in 25 ticks, at its own tick, and checked 10 ticks later', () => {
  let now = 0;
  const subscribers = Array.from({ length: 25 }, (_, tick) => {
    const subscriber = new Pinged(() => now);
    subscriber.heartbeatTick = tick;
    return subscriber;
  });
  for (now = 1; now <= 60; now++) for (const subscriber of subscribers) subscriber.onTick(now);
  for (const { pings, checks } of subscribers) {
    expect(pings.length).toBeGreaterThanOrEqual(2);
    expect((pings[1] ?? 0) - (pings[0] ?? 0)).toBe(25);
    // A check before the first ping has nothing to find.
    expect(checks.filter((at) => at > (pings[0] ?? 0))).toEqual(pings.map((at) => at + 10).filter((at) => at <= 60));
  }
  expect(new Set(subscribers.map(({ pings }) => pings[0])).size).toBe(25);
});

it('gets a random tick', () => {
  const ticks = new Set(Array.from({ length: 500 }, () => new Pinged(() => 0).heartbeatTick));
  expect(ticks.size).toBeGreaterThan(15);
  expect([...ticks].every((tick) => Number.isInteger(tick) && tick >= 0 && tick < 25)).toBe(true);
});
