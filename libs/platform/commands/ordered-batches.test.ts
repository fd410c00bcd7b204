import { expect, it } from 'vitest';

import { OrderedBatches } from './ordered-batches.ts';

const answersOf = (count: number) => Array.from({ length: count }, () => () => undefined);

it('applies the batches of a stream one after another, and settles their commands in between', async () => {
  const batches = new OrderedBatches();
  const steps: string[] = [];
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const add = (name: string, apply: Promise<void>) =>
    batches.add('stream', {
      apply: async () => {
        steps.push(`apply ${name}`);
        await apply;
      },
      answers: [(applied) => void applied.then(() => steps.push(`answer ${name}`))],
      appendMs: 0,
    });
  // Only the one before it is waited for.
  await add('a', held);
  const others = [add('b', Promise.resolve()), add('c', Promise.resolve())];
  expect(steps).toEqual(['apply a']);
  release();
  await Promise.all([...others, batches.pending('stream')]);
  expect(steps).toEqual(['apply a', 'answer a', 'apply b', 'answer b', 'apply c', 'answer c']);
});

it('divides the waiting commands while to apply takes longer than a further append', async () => {
  const batches = new OrderedBatches();
  const run = async (commands: number, appendMs: number) => {
    await batches.add('stream', { apply: async () => undefined, answers: answersOf(commands), appendMs });
    await batches.pending('stream');
    return [batches.sizeOf('stream', 31), batches.sizeOf('stream', 33), batches.sizeOf('other', 200)];
  };
  expect(batches.sizeOf('stream', 200)).toBe(200);
  expect(await run(16, 0)).toEqual([31, 17, 100]);
  // A small batch says little about large ones.
  expect(await run(15, Infinity)).toEqual([31, 17, 100]);
  expect(await run(16, Infinity)).toEqual([31, 33, 200]);
});

it('takes all waiting commands while another batch is applied', async () => {
  const batches = new OrderedBatches();
  await batches.add('stream', { apply: async () => undefined, answers: answersOf(16), appendMs: 0 });
  await batches.pending('stream');
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  await batches.add('stream', { apply: () => held, answers: [], appendMs: 0 });
  expect(batches.sizeOf('stream', 64)).toBe(64);
  release();
  await batches.pending('stream');
  expect([batches.pending('stream'), batches.sizeOf('stream', 64)]).toEqual([undefined, 32]);
});
