/** Subscriptions that end, stall, reorder items or send too much; see `event-feed.eventstoredb.ts`. */
import shared from '@eventstore/db-client/generated/shared_pb.js';
import streams, { type ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import { status } from '@grpc/grpc-js';
import { afterEach, expect, test } from 'vitest';
import { newId } from '#libs/kernel/ids.ts';
import {
  connectEventStore,
  encodePosition,
  type FeedItem,
  type FeedOptions,
  type LogFeed,
  type LogStart,
} from '#libs/platform/eventstore/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { type ReadCall, startMisbehavingServer } from './misbehaving-server.ts';

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
});

test.each([1, 2, 500])('checkpoints follow the events before them, with %i events per item', async (maxBatch) => {
  const { feed } = await against((call) => {
    for (const n of [1, 2, 3, 4, 5]) call.write(event(n));
    call.write(checkpoint(9));
    call.write(caughtUp());
  });
  const items = collect(feed, { maxBatch });
  await eventually(() => expect(items.at(-1)).toEqual({ kind: 'caught-up' }));
  expect(placesOf(items)).toEqual(['1/1', '2/2', '3/3', '4/4', '5/5', 'checkpoint 9/9', 'caught-up']);
});

test('checkpoints follow the events before them that are still buffered', async () => {
  const calls: ReadCall[] = [];
  const { feed } = await against((call, asksForHead) => {
    if (asksForHead) return call.end();
    calls.push(call);
    call.write(event(1));
  });
  const slow = feed.subscribe(defaults())[Symbol.asyncIterator]();
  const got: FeedItem[] = [(await slow.next()).value];
  const quick = collect(feed);
  await eventually(() => expect(quick).toHaveLength(1));
  // Both use one connection: when the second has received its responses, the first has received its own as well.
  for (const call of calls) {
    for (const answer of [event(2), event(3), checkpoint(9), caughtUp()]) call.write(answer);
  }
  await eventually(() => expect(quick.at(-1)).toEqual({ kind: 'caught-up' }));
  while (got.at(-1)?.kind !== 'caught-up') got.push((await slow.next()).value);
  expect(placesOf(got)).toEqual(['1/1', '2/2', '3/3', 'checkpoint 9/9', 'caught-up']);
});

test('a checkpoint before a delivered event is not yielded', async () => {
  const { feed } = await against((call) => {
    call.write(event(5));
    call.write(checkpoint(5));
    call.write(checkpoint(4));
    call.write(event(6));
  });
  const items = collect(feed);
  await eventually(() => expect(placesOf(items)).toContain('6/6'));
  expect(placesOf(items)).toEqual(['5/5', '6/6']);
});

test('system events and links to missing events are skipped', async () => {
  const { feed } = await against((call) => {
    call.write(event(1, '$streamDeleted', String(2n ** 63n - 1n)));
    call.write(new streams.ReadResp().setEvent(new streams.ReadResp.ReadEvent()));
    call.write(event(2));
  });
  const items = collect(feed);
  await eventually(() => expect(placesOf(items)).toEqual(['2/2']));
});

test.each([
  ['ends it', (call: ReadCall) => call.end()],
  ['cancels it', (call: ReadCall) => fail(call, status.CANCELLED)],
  ['fails', (call: ReadCall) => fail(call, status.INTERNAL)],
  ['refuses access', (call: ReadCall) => fail(call, status.PERMISSION_DENIED)],
])('when the server %s, the feed resumes after the last item that it yielded', async (_, end) => {
  let round = 0;
  let items: readonly FeedItem[] = [];
  // A failed call drops the messages that have not arrived yet.
  const endAfter = (call: ReadCall, yielded: number): void =>
    void eventually(() => items.length >= yielded).then(() => end(call));
  const { feed, requests, interruptions } = await against((call, asksForHead) => {
    // The feed calls it when the server is silent for a while, as on a busy machine.
    if (asksForHead) return call.end();
    round += 1;
    if (round === 1) call.write(event(1));
    if (round === 2) call.write(checkpoint(7));
    if (round <= 3) endAfter(call, Math.min(round, 2));
    else call.write(event(8));
  });
  items = collect(feed);
  await eventually(() => expect(placesOf(items)).toContain('8/8'));
  expect(requests.map(startOf).slice(0, 4)).toEqual(['start', '1/1', '7/7', '7/7']);
  expect(placesOf(items)).toEqual(['1/1', 'checkpoint 7/7', '8/8']);
  expect(interruptions).toEqual([1, 1, 2]);
});

test('consecutive failures are counted and reported', async () => {
  const { feed, interruptions } = await against((call) => fail(call, status.INTERNAL));
  collect(feed);
  await eventually(() => expect(interruptions.slice(0, 3)).toEqual([1, 2, 3]));
});

test('a subscription without progress while the log grows is replaced', async () => {
  let head = 5;
  const { feed, requests } = await against((call, asksForHead) => {
    if (asksForHead) {
      call.write(event(head++));
      return call.end();
    }
    if (startOf(call.request) === 'start') call.write(event(5));
  });
  collect(feed);
  await eventually(() => expect(requests.map(startOf)).toContain('5/5'));
});

test('a subscription to a log without new events is not replaced', async () => {
  let questions = 0;
  const { feed, requests } = await against((call, asksForHead) => {
    if (asksForHead) {
      questions += 1;
      call.write(event(5));
      return call.end();
    }
    call.write(event(5));
  });
  collect(feed);
  await eventually(() => expect(questions).toBeGreaterThan(5));
  expect(requests.map(startOf)).toEqual(['start']);
});

test('a slow consumer makes the server wait (back-pressure)', async () => {
  const total = 5_000;
  let sent = 0;
  const { feed } = await against((call, asksForHead) => {
    if (asksForHead) return call.end();
    const send = () => {
      while (sent < total) if (!call.write(event(++sent, 'Large.v1', String(sent), 'x'.repeat(2000)))) break;
    };
    call.on('drain', send);
    send();
  });
  const iterator = feed.subscribe({ ...defaults(), maxBatch: 50 })[Symbol.asyncIterator]();
  const receive = async (): Promise<number> => {
    const { value } = await iterator.next();
    return value?.kind === 'events' ? value.events.length : 0;
  };
  let received = await receive();
  let before = -1;
  await eventually(
    () => {
      const stalled = sent === before;
      before = sent;
      return stalled;
    },
    { everyMs: 200 },
  );
  expect(sent).toBeLessThan(2_000);
  while (received < total) received += await receive();
  expect([sent, received]).toEqual([total, total]);
});

async function against(read: (call: ReadCall, asksForHead: boolean) => unknown) {
  const requests: ReadReq[] = [];
  const server = await startMisbehavingServer({
    read: (call) => {
      const asksForHead = call.request.getOptions()?.hasCount() === true;
      if (!asksForHead) requests.push(call.request);
      read(call, asksForHead);
    },
  });
  cleanUps.push(() => server.stop());
  const interruptions: number[] = [];
  const { feed, close } = await connectEventStore({
    url: server.url,
    livenessMs: 30,
    backoff: { firstMs: 5, maxMs: 20 },
    onInterruption: (_, failures) => interruptions.push(failures),
  });
  cleanUps.push(close);
  return { feed, requests, interruptions };
}

function defaults(): FeedOptions<LogStart> {
  const abort = new AbortController();
  cleanUps.push(() => abort.abort());
  return { from: 'start', streamPrefixes: ['s-'], signal: abort.signal };
}

function collect(feed: LogFeed, options: Partial<FeedOptions<LogStart>> = {}): FeedItem[] {
  const items: FeedItem[] = [];
  const consume = async () => {
    for await (const item of feed.subscribe({ ...defaults(), ...options })) items.push(item);
  };
  void consume();
  return items;
}

function placesOf(items: readonly FeedItem[]): string[] {
  return items.flatMap((item) => {
    if (item.kind === 'checkpoint') return [`checkpoint ${encodePosition(item.position)}`];
    if (item.kind === 'caught-up') return [item.kind];
    if (item.kind !== 'events') throw new TypeError(`the log has no ${item.kind}`);
    return item.events.map(({ position }) => (position ? encodePosition(position) : 'nowhere'));
  });
}

function startOf(request: ReadReq): string {
  const position = request.getOptions()?.getAll()?.getPosition();
  return position ? `${position.getCommitPosition()}/${position.getPreparePosition()}` : 'start';
}

function event(place: number, type = 'Tested.v1', revision = String(place), text = ''): streams.ReadResp {
  const recorded = new streams.ReadResp.ReadEvent.RecordedEvent()
    .setId(new shared.UUID().setString(newId()))
    .setStreamIdentifier(new shared.StreamIdentifier().setStreamName(Buffer.from('s-1')))
    .setStreamRevision(revision)
    .setCommitPosition(String(place))
    .setPreparePosition(String(place))
    .setData(Buffer.from(JSON.stringify({ text })));
  recorded.getMetadataMap().set('type', type).set('content-type', 'application/json').set('created', '0');
  return new streams.ReadResp().setEvent(
    new streams.ReadResp.ReadEvent().setEvent(recorded).setCommitPosition(String(place)),
  );
}

function checkpoint(place: number): streams.ReadResp {
  const position = new streams.ReadResp.Checkpoint().setCommitPosition(String(place)).setPreparePosition(String(place));
  return new streams.ReadResp().setCheckpoint(position);
}

function caughtUp(): streams.ReadResp {
  return new streams.ReadResp().setCaughtUp(new streams.ReadResp.CaughtUp());
}

function fail(call: ReadCall, code: status): void {
  call.emit('error', { code, details: 'as scripted' });
}
