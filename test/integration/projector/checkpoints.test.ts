/** Checkpoints that projectors save while they divide the log, in any interleaving, on a real Redis. */
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { decodePosition, type PartitionCheckpoint } from '#libs/platform/eventstore/index.ts';
import {
  PartitionCheckpoints,
  projectionKeys,
  type ProjectionStart,
  ProjectionState,
} from '#libs/platform/readmodel/index.ts';
import { partitionsKey } from '#libs/platform/readmodel/read-model.keys.ts';
import { connectRedis, type RedisClient, waitForRedis } from '#libs/platform/redis/index.ts';
import { partitionCheckpointWriter } from '#services/projector/checkpoint-writers.ts';
import { nodeWith } from '#test/support/redis-commands.ts';
import { type EmptyRedis, startEmptyRedis } from '#test/support/redis.ts';

let server: EmptyRedis;
let redis: Redis;
let client: RedisClient;
const NAMES = [
  { category: 'one', version: 1 },
  { category: 'two', version: 1 },
];
const KEYS = projectionKeys(NAMES[0]!);
const PARTITIONS = partitionsKey(NAMES);

let partitions: PartitionCheckpoints;
let state: ProjectionState;

beforeAll(async () => {
  server = await startEmptyRedis();
  client = connectRedis(server.url, { onError: () => undefined });
  await waitForRedis(client, 60_000);
  // All that is saved is on one node of a cluster.
  redis = nodeWith(client, KEYS.build);
  partitions = new PartitionCheckpoints(client, NAMES);
  state = new ProjectionState(client, NAMES);
}, 120_000);
afterAll(async () => {
  client.close();
  await server.stop();
});
beforeEach(() => redis.flushall());

const PARTITION_COUNT = 3;
const MEMBERS = 2;
const at = (position: number) => ({ commit: BigInt(position), prepare: BigInt(position) });
/** Event `n` of the log, from 1, lies in this partition; the one at `offset` of it is event `partition + 1 + offset * PARTITION_COUNT`. */
const eventAt = (partition: number, offset: number): number => partition + 1 + offset * PARTITION_COUNT;

type Step =
  | { readonly kind: 'assign' | 'apply'; readonly member: number; readonly partition: number; readonly count: number }
  | { readonly kind: 'save'; readonly member: number }
  | { readonly kind: 'copy' }
  | { readonly kind: 'set back' };

const members = fc.nat(MEMBERS - 1);
const steps = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('apply' as const),
        member: members,
        partition: fc.nat(PARTITION_COUNT - 1),
        count: fc.integer({ min: 1, max: 4 }),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('assign' as const),
        member: members,
        partition: fc.nat(PARTITION_COUNT - 1),
        count: fc.constant(0),
      }),
    },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('save' as const), member: members }) },
    { weight: 1, arbitrary: fc.constantFrom<Step>({ kind: 'copy' }, { kind: 'set back' }) },
  ),
  { minLength: 20, maxLength: 60 },
);

describe('the checkpoint of projectors that divide the log', { timeout: 120_000 }, () => {
  it('is never ahead of the applied events, nor is that of a partition, whichever member saves and however late', async () => {
    const { failed, counterexample, errorInstance } = await fc.check(fc.asyncProperty(steps, play), { numRuns: 60 });
    expect({ failed, counterexample, errorInstance }).toEqual({
      failed: false,
      counterexample: null,
      errorInstance: null,
    });
  });

  it('never moves back, and is the least of all partitions', async () => {
    const { start, handover } = await handedOver(10);
    const known = new Map([['0', '0']]);
    const save = (checkpoints: PartitionCheckpoint[]) => partitions.save(start, handover, { checkpoints, known });
    expect(await save([{ partition: '0', checkpoint: '9:', position: at(90) }])).toEqual(at(10));
    await save([{ partition: '1', checkpoint: '9:', position: at(100) }]);
    expect(await save([{ partition: '2', checkpoint: '100:', position: at(1_000) }])).toEqual(at(90));
    // A member that was paused saves an older checkpoint.
    expect(await save([{ partition: '0', checkpoint: '8:', position: at(80) }])).toEqual(at(90));
    const saved = await partitions.read(start);
    expect(saved?.checkpoints.find(({ partition }) => partition === '0')).toEqual({
      partition: '0',
      checkpoint: '9:',
      position: at(90),
    });
  });

  it('is not saved for another build, another handover, or onto less than was saved before', async () => {
    const { start, handover } = await handedOver(10);
    const checkpoints = [{ partition: '0', checkpoint: '9:', position: at(90) }];
    expect(
      await partitions.save({ ...start, builds: new Map([...start.builds, ['two', 'another']]) }, handover, {
        checkpoints,
        known: new Map(),
      }),
    ).toBeNull();
    expect(await partitions.save(start, `${start.build}/another`, { checkpoints, known: new Map() })).toBeNull();
    expect(await partitions.save(start, handover, { checkpoints, known: new Map([['0', '5:']]) })).toBeNull();
    expect(await partitions.save(start, handover, { checkpoints, known: new Map([['0', '4:']]) })).toEqual(at(10));
  });

  it('is handed over by only one of several projectors, and by none after the read models were deleted', async () => {
    const { start, handover } = await handedOver(10);
    expect(await handOver(start, null)).toBe(false);
    expect(await handOver(start, handover)).toBe(true);
    expect(await handOver(start, handover)).toBe(false);
    await state.clear();
    expect(await handOver(start, null)).toBe(false);
    const next = await state.begin();
    expect(await partitions.read(next)).toBeNull();
    expect(await handOver(next, null)).toBe(true);
  });

  it('cannot be begun while the read models are being deleted, so they are not marked as complete', async () => {
    await state.begin();
    await redis.set(`${KEYS.build.slice(0, KEYS.build.indexOf('{'))}{o:e}:revision`, '1');
    const found: unknown[] = [];
    async function* scan(...args: Parameters<RedisClient['scan']>) {
      found.push(await new ProjectionState(client, NAMES).begin().catch((error: Error) => error.message));
      yield* client.scan(...args);
    }
    const slow = new Proxy(client, {
      get(target, name) {
        const member: unknown = name === 'scan' ? scan : Reflect.get(target, name, target);
        return typeof member === 'function' ? member.bind(target) : member;
      },
    });
    expect(await new ProjectionState(slow, NAMES).clear()).toBe(1);
    expect(found).toEqual(['The read models are being deleted']);
    expect((await state.begin()).from).toBe('start');
  });

  it('survives read models that a projector with other categories has deleted', async () => {
    await handedOver(10);
    await redis.del(KEYS.build, KEYS.checkpoint, KEYS.complete);
    const start = await state.begin();
    expect(await partitions.read(start)).toBeNull();
    expect(await handOver(start, null)).toBe(true);
  });
});

function handOver(start: ProjectionStart, seen: string | null): Promise<boolean> {
  const ends = Array.from({ length: PARTITION_COUNT }, (_, partition) => ({
    partition: `${partition}`,
    checkpoint: '4:',
  }));
  return partitions.handOver(start, seen, { position: at(10), ends });
}

/** With partitions that begin at offset 4, everything up to `position` being applied. */
async function handedOver(position: number): Promise<{ readonly start: ProjectionStart; readonly handover: string }> {
  const start = await state.begin();
  const ends = Array.from({ length: PARTITION_COUNT }, (_, partition) => ({
    partition: `${partition}`,
    checkpoint: '4:',
  }));
  expect(await partitions.handOver(start, null, { position: at(position), ends })).toBe(true);
  const saved = await partitions.read(start);
  return { start, handover: saved!.handover };
}

interface Member {
  writer: ReturnType<typeof partitionCheckpointWriter>;
  /** By partition, the offset that it resumes from. */
  readonly next: Map<number, number>;
}

/** Members apply events of the partitions that they hold or do not yet know to have lost; Redis may lose any of it. */
async function play(script: readonly Step[]): Promise<void> {
  await redis.flushall();
  const { start, handover } = await handedOver(4 * PARTITION_COUNT);
  // Applied events are in the same Redis: the test tracks them, and sets them back with it.
  let applied = new Set<number>(Array.from({ length: 4 * PARTITION_COUNT }, (_, n) => n + 1));
  let copy: {
    readonly applied: Set<number>;
    readonly hash: Record<string, string>;
    readonly checkpoint: string;
  } | null = null;
  const join = async (partition: number | null): Promise<Member> => {
    const writer = partitionCheckpointWriter(partitions, start, handover, () => undefined);
    const checkpoints = (await partitions.read(start))!.checkpoints.filter(
      (checkpoint) => partition !== null && checkpoint.partition === `${partition}`,
    );
    writer.begin(checkpoints);
    return {
      writer,
      next: new Map(
        checkpoints.map((checkpoint) => [Number(checkpoint.partition), Number.parseInt(checkpoint.checkpoint, 10)]),
      ),
    };
  };
  const all = await Promise.all(Array.from({ length: MEMBERS }, (_, n) => join(n)));
  for (const step of script) {
    if (step.kind === 'copy') {
      const checkpoint = (await redis.get(KEYS.checkpoint))!;
      copy = { applied: new Set(applied), hash: await redis.hgetall(PARTITIONS), checkpoint };
    } else if (step.kind === 'set back') {
      if (copy === null) continue;
      applied = new Set(copy.applied);
      await redis.hset(PARTITIONS, copy.hash);
      await redis.set(KEYS.checkpoint, copy.checkpoint);
      // Every connection breaks, so all members begin again.
      for (const [n, member] of all.entries()) all[n] = await join([...member.next.keys()][0] ?? null);
    } else {
      const member = all[step.member]!;
      if (step.kind === 'assign') {
        // A member that does not know that it has lost the partition keeps it.
        if (await member.writer.save(false)) all[step.member] = await join(step.partition);
      } else if (step.kind === 'apply') {
        const [partition, next] = [...member.next][0] ?? [];
        if (partition === undefined || next === undefined) continue;
        for (let offset = next; offset < next + step.count; offset++) applied.add(eventAt(partition, offset));
        const last = next + step.count;
        member.next.set(partition, last);
        const position = at(eventAt(partition, last - 1));
        member.writer.note([{ partition: `${partition}`, checkpoint: `${last}:`, position }]);
      } else if (!(await member.writer.save(false))) {
        all[step.member] = await join([...member.next.keys()][0] ?? null);
      }
    }
    await expectTrue(applied, start);
  }
}

async function expectTrue(applied: ReadonlySet<number>, start: ProjectionStart): Promise<void> {
  const { commit } = decodePosition((await redis.get(KEYS.checkpoint))!);
  const upTo = Array.from({ length: Number(commit) }, (_, n) => n + 1);
  expect(upTo.filter((event) => !applied.has(event))).toEqual([]);
  for (const { partition, checkpoint } of (await partitions.read(start))!.checkpoints) {
    const before = Array.from({ length: Number.parseInt(checkpoint, 10) }, (_, offset) =>
      eventAt(Number(partition), offset),
    );
    expect(before.filter((event) => !applied.has(event))).toEqual([]);
  }
}
