import { describe, expect, it, vi } from 'vitest';

import { CommandOutbox, type TypingCommand } from './commands.ts';

const LIMIT = 65_536;
const ids = (outbox: CommandOutbox, nowMs = 0): string[] => outbox.take(nowMs, LIMIT).frames.map(({ id }) => id);

describe('CommandOutbox', () => {
  it('sends each command once per connection, always with the same id, until it is answered', async () => {
    const outbox = new CommandOutbox();
    const first = outbox.add('reaction.remove', undefined, 'a');
    const second = outbox.add('reaction.add', { emoji: '👍' }, 'b');
    expect(ids(outbox)).toEqual(['a', 'b']);
    expect(ids(outbox)).toEqual([]);
    outbox.settle({ frame: 'ack', id: 'a', seq: null });
    outbox.connected();
    expect(outbox.take(0, LIMIT).frames).toEqual([
      { frame: 'command', id: 'b', type: 'reaction.add', data: { emoji: '👍' } },
    ]);
    outbox.settle({ frame: 'ack', id: 'b', seq: 12 });
    expect(await Promise.all([first, second])).toEqual([
      { id: 'a', seq: null },
      { id: 'b', seq: 12 },
    ]);
  });

  it('generates UUIDs as ids', () => {
    const outbox = new CommandOutbox();
    void outbox.add('typing', undefined);
    expect(ids(outbox)[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  it('rejects refused commands with the message of the server', async () => {
    const outbox = new CommandOutbox();
    const refused = outbox.add('reaction.add', {}, 'a');
    outbox.settle({
      frame: 'error',
      id: 'a',
      code: 'invalid_command',
      detail: [{ type: 'missing', loc: ['data', 'emoji'], msg: 'Field required' }],
      retry_after: 3,
    });
    await expect(refused).rejects.toMatchObject({
      code: 'invalid_command',
      message: 'data.emoji: Field required',
      retryAfter: 3,
    });
  });

  it('keeps commands that a stopping server refuses for the next connection', async () => {
    const outbox = new CommandOutbox();
    const posted = outbox.add('run.cancel', undefined, 'a');
    outbox.take(0, LIMIT);
    outbox.settle({ frame: 'error', id: 'a', code: 'stopping', detail: 'This process is stopping', retry_after: 2 });
    expect(ids(outbox)).toEqual([]);
    outbox.connected();
    expect(ids(outbox)).toEqual(['a']);
    outbox.settle({ frame: 'ack', id: 'a', seq: 1 });
    expect(await posted).toEqual({ id: 'a', seq: 1 });
  });

  it('stays below the rate at which the server closes connections, and repeats cost none of it', () => {
    const outbox = new CommandOutbox();
    for (let index = 0; index < 200; index++) void outbox.add('run.cancel', undefined, `${index}`);
    expect(ids(outbox, 1_000)).toHaveLength(90);
    expect(outbox.take(31_000, LIMIT)).toEqual({ frames: [], againInMs: 30_000 });
    // After a reconnection, the sent commands are repeated, and no further command is sent early.
    outbox.connected();
    expect(ids(outbox, 40_000)).toHaveLength(90);
    expect(ids(outbox, 60_999)).toEqual([]);
    // The server counts the repeats, too.
    expect(ids(outbox, 61_000)).toHaveLength(20);
    expect(ids(outbox, 100_000)).toHaveLength(70);
    outbox.abandon('the test ends', { isClosed: true });
  });

  it('rejects a command that is not answered in time, whether or not it was sent', async () => {
    vi.useFakeTimers();
    try {
      const outbox = new CommandOutbox(5_000);
      const sent = outbox.add('run.cancel', undefined, 'a');
      outbox.take(0, LIMIT);
      const unsent = outbox.add('run.cancel', undefined, 'b');
      const typing = outbox.add('typing', undefined, 'c');
      const reasons = Promise.all([sent, unsent].map((answer) => answer.catch((error: Error) => error.message)));
      await vi.advanceTimersByTimeAsync(5_000);
      expect(await reasons).toEqual([
        'command a was sent but not answered within 5 s',
        'command b was not sent within 5 s',
      ]);
      expect(await typing).toEqual({ id: 'c', seq: null });
      expect(outbox.isEmpty).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });

  it('rejects commands that are too large for the server', async () => {
    const outbox = new CommandOutbox();
    const large = outbox.add('interaction.post', { text: '€'.repeat(LIMIT / 3) }, 'a');
    expect(ids(outbox)).toEqual([]);
    await expect(large).rejects.toMatchObject({ code: 'too_large' });
  });

  it('leaves no unhandled rejection of commands that the program abandons by closing', async () => {
    const rejected: unknown[] = [];
    const note = (reason: unknown): void => void rejected.push(reason);
    process.prependListener('unhandledRejection', note);
    try {
      const outbox = new CommandOutbox();
      void outbox.add('typing', undefined, 'a');
      outbox.abandon('closed', { isClosed: true });
      await new Promise((resolve) => setImmediate(resolve));
      expect(rejected).toEqual([]);
    } finally {
      process.off('unhandledRejection', note);
    }
  });

  it('reports for each abandoned command whether it was sent', async () => {
    const outbox = new CommandOutbox();
    const sent = outbox.add('run.cancel', undefined, 'a');
    outbox.take(0, LIMIT);
    outbox.connected();
    const unsent = outbox.add('run.cancel', undefined, 'b');
    outbox.abandon('closed', { isClosed: false });
    await expect(sent).rejects.toThrow('closed; command a was sent but not answered');
    await expect(unsent).rejects.toThrow('closed; command b was not sent');
  });

  describe('typing', () => {
    const outbox = (): CommandOutbox => new CommandOutbox();

    it('is sent once in four seconds for each writer, and at once after it has stopped or the writer has posted', () => {
      const typing = outbox();
      const admitted = (data: TypingCommand | undefined, atMs: number): boolean => typing.admitTyping(data, atMs);
      expect([admitted(undefined, 0), admitted(undefined, 3_999), admitted({ agent_id: 'b' }, 100)]).toEqual([
        true,
        false,
        true,
      ]);
      expect(admitted({}, 4_000)).toBe(true);
      expect([admitted({ typing: false }, 4_001), admitted({ typing: false }, 4_002)]).toEqual([true, false]);
      expect([admitted({}, 4_003), admitted({}, 4_004)]).toEqual([true, false]);
      void typing.add('interaction.post', {}, 'a');
      typing.take(4_005, LIMIT);
      expect(admitted({}, 4_006)).toBe(true);
      typing.abandon('the test ends', { isClosed: true });
    });

    it('takes nothing from the budget of messages, however many keys are pressed', () => {
      const keys = outbox();
      let sent = 0;
      for (let ms = 0; ms < 59_000; ms += 100) {
        // Each keystroke of a program that also says when it pauses.
        if (!keys.admitTyping({ typing: ms % 200 === 0 }, ms)) continue;
        void keys.add('typing', undefined, `${ms}`);
        sent += keys.take(ms, LIMIT).frames.length;
      }
      expect(sent).toBe(15);
      for (let index = 0; index < 90; index++) void keys.add('interaction.post', {}, `post ${index}`);
      expect(ids(keys, 59_000)).toHaveLength(90);
      keys.abandon('the test ends', { isClosed: true });
    });

    it('is not sent behind waiting commands, nor again on the next connection', async () => {
      const late = outbox();
      const shown = late.add('typing', undefined, 'shown');
      expect(ids(late)).toEqual(['shown']);
      void late.add('interaction.post', {}, 'waits');
      expect(late.admitTyping(undefined, 0)).toBe(false);
      late.connected();
      expect(await shown).toEqual({ id: 'shown', seq: null });
      expect(ids(late)).toEqual(['waits']);
      late.abandon('the test ends', { isClosed: true });
    });
  });

  it('refuses a duplicate id, and commands beyond its limit', async () => {
    const outbox = new CommandOutbox();
    for (let index = 0; index < 1_000; index++) void outbox.add('typing', undefined, `${index}`);
    await expect(outbox.add('typing', undefined, '7')).rejects.toMatchObject({ code: 'duplicate_id' });
    await expect(outbox.add('typing', undefined)).rejects.toMatchObject({ code: 'too_many_commands' });
    outbox.abandon('the test ends', { isClosed: true });
  });
});
