import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { Connection, type Ending } from './connection.ts';
import type { ServerFrame } from './frames.ts';
import type { WebSocketLike } from './websocket.ts';

/** A websocket without a network: records sent frames, and delivers frames of the test. */
class Wire implements WebSocketLike {
  readonly protocol = 'parley.v1';
  readonly sent: unknown[] = [];
  closedWith: number | undefined;
  readonly #listeners = new Map<string, (event: never) => void>();

  addEventListener(type: string, listener: (event: never) => void): void {
    this.#listeners.set(type, listener);
  }
  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }
  close(code?: number): void {
    this.closedWith = code;
  }
  hear(data: unknown): void {
    this.#listeners.get('message')?.({ data } as never);
  }
  end(code: number): void {
    this.#listeners.get('close')?.({ code, reason: '' } as never);
  }
}

describe('Connection', () => {
  let wire: Wire;
  let frames: ServerFrame[];
  let connection: Connection;
  let ending: Ending | null;

  beforeEach(() => {
    vi.useFakeTimers();
    wire = new Wire();
    frames = [];
    ending = null;
    connection = new Connection(wire, (frame) => frames.push(frame));
    void connection.ended.then((how) => (ending = how));
  });
  afterEach(() => void vi.useRealTimers());

  it('is closed when no hello arrives', async () => {
    await vi.advanceTimersByTimeAsync(14_999);
    expect(ending).toBeNull();
    await vi.advanceTimersByTimeAsync(1);
    expect(ending).toEqual({ code: 4013, reason: 'no hello' });
    expect(wire.closedWith).toBe(4013);
  });

  it('pings a silent server, and is closed without an answer', async () => {
    connection.expectHeartbeat(1_000);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(wire.sent).toEqual([{ frame: 'ping' }]);
    await vi.advanceTimersByTimeAsync(9_999);
    expect(ending).toBeNull();
    await vi.advanceTimersByTimeAsync(1);
    expect(ending).toEqual({ code: 4013, reason: 'no pong' });
  });

  it.each([0, 1, 12_000, 24_999])(
    'notices within two heartbeats a silence that begins after %i ms',
    async (lastAtMs) => {
      connection.expectHeartbeat(25_000);
      await vi.advanceTimersByTimeAsync(lastAtMs);
      wire.hear('{"frame":"ping"}');
      await vi.advanceTimersByTimeAsync(24_999);
      expect(wire.sent).toEqual([]);
      await vi.advanceTimersByTimeAsync(25_001);
      expect(ending).toEqual({ code: 4013, reason: 'no pong' });
    },
  );

  it('asks at once after a change of the network', async () => {
    connection.expectHeartbeat(25_000);
    wire.hear('{"frame":"ping"}');
    connection.ask();
    expect(wire.sent).toEqual([{ frame: 'ping' }]);
    wire.hear('{"frame":"pong"}');
    await vi.advanceTimersByTimeAsync(20_000);
    expect(ending).toBeNull();
    connection.ask();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(ending).toEqual({ code: 4013, reason: 'no pong' });
  });

  it('stays open while frames arrive', async () => {
    connection.expectHeartbeat(1_000);
    for (let time = 0; time < 10; time++) {
      await vi.advanceTimersByTimeAsync(900);
      wire.hear('{"frame":"ping"}');
    }
    expect(wire.sent).toEqual([]);
    await vi.advanceTimersByTimeAsync(2_000);
    wire.hear('{"frame":"pong"}');
    await vi.advanceTimersByTimeAsync(9_000);
    expect(ending).toBeNull();
    expect(frames).toHaveLength(11);
  });

  it.each(['no JSON', '[]x', '7', 'null', '{}', new ArrayBuffer(1)])('is closed when %o arrives', async (data) => {
    wire.hear(data);
    await vi.advanceTimersByTimeAsync(0);
    expect(ending).toMatchObject({ code: 4000 });
    expect(frames).toEqual([]);
  });

  it('ends at once when it is closed, and ignores later frames', async () => {
    connection.leave(1000, '');
    wire.hear('{"frame":"ping"}');
    wire.end(1006);
    connection.send({ frame: 'pong' });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(ending).toEqual({ code: 1000, reason: '' });
    expect({ frames, sent: wire.sent }).toEqual({ frames: [], sent: [] });
  });

  it('ends with the code and reason of the websocket', async () => {
    wire.end(1012);
    await vi.advanceTimersByTimeAsync(0);
    expect(ending).toEqual({ code: 1012, reason: '' });
  });
});
