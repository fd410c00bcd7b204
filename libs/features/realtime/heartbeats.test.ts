import { expect, it } from 'vitest';

import { ChannelListener } from './channel-listener.ts';
import { Heartbeats } from './heartbeats.ts';
import type { Grant } from './realtime.ports.ts';

/** Writes down what it is asked, and when. */
class Asked extends ChannelListener {
  readonly form = 'websocket';
  readonly include = 0;
  readonly isOpen = true;
  readonly unsent = 0;
  readonly grant: Grant = {
    organizationId: 'o',
    channelId: 'c',
    principalType: 'user',
    principalId: 'u',
    keyId: 'k',
    scopes: [],
    takesPart: false,
    expiresAtMs: null,
  };
  readonly beats: number[] = [];
  readonly checks: number[] = [];
  readonly #now: () => number;

  constructor(now: () => number) {
    super();
    this.#now = now;
  }

  beat(): void {
    this.beats.push(this.#now());
  }

  checkBeat(): void {
    this.checks.push(this.#now());
  }

  write(): void {}
  caughtUp(): void {}
  close(): void {}
  cut(): void {}
  drained = (): Promise<void> => Promise.resolve();
  closed = (): Promise<void> => Promise.resolve();
}

it('every listener is asked once in 25 ticks, and looked at 10 ticks later', () => {
  let now = 0;
  let place = 0;
  const heartbeats = new Heartbeats(() => place);
  const listeners = Array.from({ length: 25 }, (_, n) => {
    place = (n + 0.5) / 25;
    const listener = new Asked(() => now);
    heartbeats.add(listener);
    return listener;
  });
  for (now = 1; now <= 60; now++) heartbeats.tick();
  for (const { beats, checks } of listeners) {
    expect(beats.length).toBeGreaterThanOrEqual(2);
    expect((beats[1] ?? 0) - (beats[0] ?? 0)).toBe(25);
    // One that came just in time to be looked at before it was asked has nothing to answer for yet.
    expect(checks.filter((at) => at > (beats[0] ?? 0))).toEqual(beats.map((at) => at + 10).filter((at) => at <= 60));
  }
  expect(new Set(listeners.map(({ beats }) => beats[0])).size).toBe(25);
});

it('one that is gone is not asked any more', () => {
  const heartbeats = new Heartbeats(() => 0.2);
  const listener = new Asked(() => 0);
  heartbeats.add(listener);
  heartbeats.remove(listener);
  for (let tick = 0; tick < 30; tick++) heartbeats.tick();
  expect([...listener.beats, ...listener.checks]).toEqual([]);
});
