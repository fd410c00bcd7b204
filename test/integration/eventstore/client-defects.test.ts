/**
 * Defects of the official client that `client-guard.ts` and `connection.ts` work around. An
 * uncaught exception or an unhandled rejection anywhere in this file fails the run.
 */
import { afterEach, expect, test } from 'vitest';
import statuses from '@eventstore/db-client/generated/status_pb.js';
import streams, { type BatchAppendReq } from '@eventstore/db-client/generated/streams_pb.js';
import serverFeatures from '@eventstore/db-client/generated/serverfeatures_pb.js';
import { status } from '@grpc/grpc-js';
import { NO_EVENTS } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { connectEventStore, type EventStore, type EventToAppend } from '#libs/platform/eventstore/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { answerFeatures, type BatchCall, type Script, startMisbehavingServer, succeed } from './misbehaving-server.ts';

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
});

test('a response without a waiting append is reported and dropped', async () => {
  const { store, defects } = await against({
    batchStream: (call) =>
      call.on('data', (request) => {
        call.write(succeed(request));
        call.write(succeed(request));
      }),
  });
  expect(await append(store)).toMatchObject({ kind: 'appended' });
  await eventually(() => expect(defects).toEqual([expect.any(TypeError)]));
  expect(await append(store)).toMatchObject({ kind: 'appended' });
});

test('an append has an unknown outcome when its response lacks required fields', async () => {
  const { store, defects } = await against({
    batchStream: (call) =>
      call.on('data', (request) => {
        call.write(
          new streams.BatchAppendResp().setCorrelationId(request.getCorrelationId()).setError(new statuses.Status()),
        );
      }),
  });
  await expect(append(store, { deadlineMs: 200 })).rejects.toMatchObject({ code: 'outcome_unknown' });
  expect(defects).toEqual([expect.any(TypeError)]);
});

test('appends that wait for a congested stream fail without an unhandled rejection when it breaks', async () => {
  const calls: BatchCall[] = [];
  const { store, server } = await against({ batchStream: (call) => calls.push(call) });
  const appends = Array.from({ length: 20 }, () => append(store, { deadlineMs: 60_000 }, 'x'.repeat(500_000)));
  const outcomes = Promise.allSettled(appends);
  await eventually(() => expect(calls).toHaveLength(1));
  server.stop();
  const faults = (await outcomes).map((outcome) => outcome.status === 'rejected' && outcome.reason);
  expect(faults).toEqual(appends.map(() => expect.objectContaining({ code: 'outcome_unknown' })));
});

test('a broken batch stream fails only the appends of its own connection', async () => {
  const calls: BatchCall[] = [];
  const waits: Script = { batchStream: (call) => call.on('data', () => calls.push(call)) };
  const broken = await against(waits);
  const requests: [BatchCall, BatchAppendReq][] = [];
  const other = await against({ batchStream: (call) => call.on('data', (request) => requests.push([call, request])) });
  const lost = append(broken.store, { deadlineMs: 60_000 }).catch((error: unknown) => error);
  const kept = append(other.store, { deadlineMs: 60_000 });
  await eventually(() => expect([calls.length, requests.length]).toEqual([1, 1]));
  broken.server.stop();
  expect(await lost).toMatchObject({ code: 'outcome_unknown' });
  for (const [call, request] of requests) call.write(succeed(request));
  expect(await kept).toMatchObject({ kind: 'appended' });
  expect([...broken.defects, ...other.defects]).toEqual([]);
});

test('a batch stream that the server ends without an error fails its appends, and is replaced', async () => {
  const calls: BatchCall[] = [];
  const { store, defects } = await against({
    batchStream: (call) => {
      const isFirst = calls.push(call) === 1;
      call.on('data', (request: BatchAppendReq) => void (isFirst ? call.end() : call.write(succeed(request))));
    },
  });
  await expect(append(store, { deadlineMs: 60_000 })).rejects.toMatchObject({
    code: 'outcome_unknown',
    cause: expect.objectContaining({ message: 'the server ended the stream of appends' }),
  });
  expect(await append(store, { deadlineMs: 60_000 })).toMatchObject({ kind: 'appended' });
  expect([calls.length, defects]).toEqual([2, []]);
});

test('appends beyond the limit of unanswered bytes are refused at once', async () => {
  const { store } = await against({ batchStream: () => undefined });
  const large = 'x'.repeat(900_000);
  const waiting = Promise.allSettled(Array.from({ length: 72 }, () => append(store, { deadlineMs: 500 }, large)));
  await expect(append(store, { deadlineMs: 60_000 }, 'x'.repeat(4_000_000))).rejects.toMatchObject({
    code: 'overloaded',
  });
  await waiting;
  await expect(append(store, { deadlineMs: 100 }, large)).rejects.toMatchObject({ code: 'outcome_unknown' });
});

test('data that cannot be serialised as JSON is refused before it reaches the client', async () => {
  const { store } = await against({});
  await expect(store.append('s', NO_EVENTS, [{ ...event(), data: { n: 1n } }])).rejects.toThrow(TypeError);
  await expect(store.append('s', NO_EVENTS, [])).rejects.toThrow('nothing to append');
});

test('a failed request for the server features is repeated', async () => {
  let questions = 0;
  const { store } = await against({
    features: (call, answer) => {
      questions += 1;
      if (questions === 1) return answer({ code: status.INTERNAL, details: 'not today' });
      answerFeatures(call, answer);
    },
  });
  await expect(append(store)).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(await append(store)).toMatchObject({ kind: 'appended' });
  expect(questions).toBe(2);
});

test('a server without batch appends is refused, and accepted after an upgrade', async () => {
  let old = true;
  const { store } = await against({
    features: (call, answer) =>
      old ? answer(null, new serverFeatures.SupportedMethods()) : answerFeatures(call, answer),
  });
  await expect(append(store)).rejects.toMatchObject({
    code: 'store_unavailable',
    cause: expect.objectContaining({ message: expect.stringContaining('21.10') }),
  });
  old = false;
  expect(await append(store)).toMatchObject({ kind: 'appended' });
});

test('a server that does not answer the request for its features is unavailable after the deadline', async () => {
  const { store } = await against({ features: () => undefined });
  await expect(append(store, { deadlineMs: 200 })).rejects.toMatchObject({ code: 'store_unavailable' });
});

test('an append has a deadline for the server, with a tolerance for clock differences', async () => {
  const deadlines: number[] = [];
  const { store } = await against({
    batchStream: (call) =>
      call.on('data', (request: BatchAppendReq) => {
        deadlines.push(request.getOptions()?.getDeadline()?.toDate().getTime() ?? 0);
        call.write(succeed(request));
      }),
  });
  const before = Date.now();
  await append(store, { deadlineMs: 60_000 });
  expect(deadlines).toHaveLength(1);
  expect(deadlines[0]).toBeGreaterThan(before + 30_000);
  expect(deadlines[0]).toBeLessThanOrEqual(Date.now() + 63_000);
});

test('an append without a response has an unknown outcome after the deadline', async () => {
  const { store } = await against({ batchStream: (call) => call.on('data', () => undefined) });
  await expect(append(store, { deadlineMs: 200 })).rejects.toMatchObject({ code: 'outcome_unknown', status: 503 });
});

test('a read without a response fails with store_unavailable after the deadline', async () => {
  const { store } = await against({ read: () => undefined });
  const read = async () => {
    for await (const _ of store.readStream('s', { deadlineMs: 200 })) throw new Error('no event was sent');
  };
  await expect(read()).rejects.toMatchObject({ code: 'store_unavailable' });
  await expect(store.ping()).rejects.toMatchObject({ code: 'store_unavailable' });
});

test('closing takes about a second at most, even if the server is silent', async () => {
  const { store, feed } = await against({ batchStream: () => undefined });
  const waiting = Promise.allSettled([append(store)]);
  await store.close();
  expect(await waiting).toMatchObject([{ status: 'rejected', reason: { status: 503 } }]);
  await expect(store.ping()).rejects.toMatchObject({ code: 'stopping' });
  const abort = new AbortController();
  const items = feed.subscribe({ from: 'start', streamPrefixes: ['s-'], signal: abort.signal });
  await expect(items[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'stopping' });
});

async function against(script: Script) {
  const server = await startMisbehavingServer(script);
  cleanUps.push(() => server.stop());
  const defects: unknown[] = [];
  const { store, feed, close } = await connectEventStore({ url: server.url, onDefect: (error) => defects.push(error) });
  cleanUps.push(close);
  return { store, feed, server, defects };
}

function append(store: EventStore, options?: { deadlineMs: number }, payload = '') {
  return store.append('s', NO_EVENTS, [event(payload)], options);
}

function event(payload = ''): EventToAppend {
  const id = newId();
  return {
    id,
    type: 'Tested.v1',
    data: { payload },
    metadata: {
      at: '2026-01-31T12:00:00.000Z',
      organizationId: 'o',
      actor: { type: 'system', id: 'test' },
      commandId: id,
      $correlationId: id,
      $causationId: id,
    },
  };
}
