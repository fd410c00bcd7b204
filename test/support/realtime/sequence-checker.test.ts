import { describe, expect, it } from 'vitest';

import { problemsOf, type Received, type ReceivedSession } from './sequence-checker.ts';

const frameOf = (channel: string, seq: number, type = 'channel.updated') =>
  JSON.stringify({ frame: 'event', seq, type, at: '2026-01-01T00:00:00.000Z', data: { id: channel, name: `${seq}` } });
const caughtUp = (seq: number) => JSON.stringify({ frame: 'caught_up', seq });
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

const LOGS = new Map(['c1', 'c2'].map((channel) => [channel, range(1, 20).map((seq) => frameOf(channel, seq))]));

const session = (after: number | undefined, head: number, frames: readonly string[]): ReceivedSession => ({
  after,
  hello: { frame: 'hello', channel_id: 'c1', head },
  frames,
});
const events = (from: number, to: number) => range(from, to).map((seq) => frameOf('c1', seq));

/** Resumed at 5, cut once during the replay and once while live. */
function sound(): Received {
  return {
    name: 'socket',
    channelId: 'c1',
    after: 5,
    sessions: [
      session(5, 12, events(6, 9)),
      session(9, 12, [...events(10, 12), caughtUp(12), ...events(13, 15)]),
      session(15, 16, [events(16, 16)[0] ?? '', caughtUp(16), ...events(17, 20)]),
    ],
  };
}

/** The same with the frames of its second session changed. */
function with2nd(change: (frames: string[]) => string[]): Received {
  const received = sound();
  return {
    ...received,
    sessions: received.sessions.map((part, index) =>
      index === 1 ? { ...part, frames: change([...part.frames]) } : part,
    ),
  };
}

const kindsOf = (received: Received, complete = true) => [
  ...new Set(problemsOf([received], { logs: LOGS, complete }).map((problem) => problem.split(':')[0])),
];

describe('the checker of received sequences', () => {
  it('reports nothing for an exact suffix over several sessions', () => {
    expect(kindsOf(sound())).toEqual([]);
    const onlyNew = [
      session(undefined, 17, [caughtUp(17), ...events(18, 18)]),
      session(18, 20, [...events(19, 20), caughtUp(20)]),
    ];
    expect(kindsOf({ ...sound(), after: undefined, sessions: onlyNew })).toEqual([]);
  });

  it('finds a gap within a session and between two sessions', () => {
    expect(kindsOf(with2nd((frames) => frames.filter((text) => text !== frameOf('c1', 14))))).toEqual(['gap']);
    expect(kindsOf(with2nd((frames) => frames.filter((text) => text !== frameOf('c1', 10))))).toEqual(['gap']);
    // The last frame of a session is missing: the next session resumed after it.
    expect(kindsOf(with2nd((frames) => frames.slice(0, -1)))).toEqual(['resumed', 'gap']);
  });

  it('finds a frame that is repeated at once, later, or in the next session', () => {
    expect(kindsOf(with2nd((frames) => frames.toSpliced(5, 0, frameOf('c1', 13))))).toEqual(['double']);
    expect(kindsOf(with2nd((frames) => [...frames, frameOf('c1', 11)]))).toEqual(['double']);
    const again = sound();
    const sessions = again.sessions.map((part, index) =>
      index === 2 ? { ...part, frames: [frameOf('c1', 15), ...part.frames] } : part,
    );
    expect(kindsOf({ ...again, sessions })).toEqual(['double']);
    expect(kindsOf(with2nd((frames) => [...frames, caughtUp(15)]))).toEqual(['double']);
  });

  it('finds a frame from before its cursor', () => {
    const [first, ...rest] = sound().sessions;
    const early = session(5, 12, [frameOf('c1', 5), ...(first?.frames ?? [])]);
    expect(kindsOf({ ...sound(), sessions: [early, ...rest] })).toEqual(['double']);
  });

  it('finds frames out of order', () => {
    const swapped = (frames: string[]) => frames.with(4, frames[5] ?? '').with(5, frames[4] ?? '');
    expect(kindsOf(with2nd(swapped))).toEqual(['reorder']);
  });

  it('finds a frame of another channel, and one that the log lacks', () => {
    expect(kindsOf(with2nd((frames) => frames.toSpliced(4, 0, frameOf('c2', 13))))).toEqual(['foreign']);
    expect(kindsOf(with2nd((frames) => [...frames, frameOf('c1', 21)]))).toEqual(['foreign']);
    const other = session(5, 12, events(6, 20));
    expect(
      kindsOf({ ...sound(), sessions: [{ ...other, hello: { frame: 'hello', channel_id: 'c2', head: 12 } }] }),
    ).toEqual(['foreign']);
  });

  it('finds a frame whose bytes differ from the log, even if only in the order of members', () => {
    const altered = (text: string) =>
      kindsOf(with2nd((frames) => frames.map((frame) => (frame === frameOf('c1', 13) ? text : frame))));
    expect(altered(frameOf('c1', 13, 'channel.archived'))).toEqual(['altered']);
    expect(altered(frameOf('c1', 13).replace('"13"', '"thirteen"'))).toEqual(['altered']);
    const { frame, seq, type, at, data } = JSON.parse(frameOf('c1', 13));
    expect(altered(JSON.stringify({ seq, frame, type, at, data }))).toEqual(['altered']);
  });

  it('finds a socket whose first frame is not hello', () => {
    const [first, ...rest] = sound().sessions;
    const without = { after: 5, hello: undefined, frames: ['{"frame":"ping"}', ...(first?.frames ?? [])] };
    expect(kindsOf({ ...sound(), sessions: [without, ...rest] })).toEqual(['greeting']);
  });

  it('finds a caught_up that is too early or has another sequence', () => {
    const early = with2nd((frames) => [
      ...frames.slice(0, 2),
      caughtUp(11),
      ...frames.slice(2).filter((f) => f !== caughtUp(12)),
    ]);
    expect(kindsOf(early)).toEqual(['caught_up']);
    expect(kindsOf(with2nd((frames) => frames.map((f) => (f === caughtUp(12) ? caughtUp(13) : f))))).toEqual([
      'caught_up',
    ]);
  });

  it('finds a socket that did not reach the end, if it must', () => {
    const short = { ...sound(), sessions: sound().sessions.slice(0, 2) };
    expect(kindsOf(short)).toEqual(['unfinished']);
    expect(kindsOf(short, false)).toEqual([]);
    expect(kindsOf({ ...sound(), after: undefined, sessions: [] })).toEqual(['unfinished']);
  });
});
