/** Failures that can happen to a deployment, each with its end. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Deployment } from './deployment.ts';
import type { ParleyProcess } from './parley-process.ts';

export interface Failure {
  readonly name: string;
  /** The component that fails. At most one failure per component at a time, so that one gateway always runs. */
  readonly of: string;
  /** Resolves when it is over: killed processes run again. */
  happen(random: (below: number) => number): Promise<void>;
}

/**
 * @param longestMs of a failure; processes that are silent for longer than six seconds lose their group membership
 */
export function failuresOf(deployment: Deployment, longestMs: number): Failure[] {
  const { gateways, realtime, projectors, relays, eventStore, redis, kafka } = deployment;
  const away = (random: (below: number) => number): Promise<void> =>
    delay(random(4) === 0 ? random(longestMs) : random(Math.min(600, longestMs)));
  const stores = [
    { of: 'the event store', store: eventStore },
    { of: 'Redis', store: redis },
    { of: 'the broker', store: kafka },
  ];
  return [
    ...processFailures('a gateway', gateways, away),
    ...processFailures('a realtime node', realtime, away),
    ...processFailures('a projector', projectors, away),
    ...processFailures('a relay', relays, away),
    ...stores.flatMap(({ of, store }): Failure[] => [
      {
        name: `${of} is killed`,
        of,
        async happen(random) {
          await store.kill9();
          await away(random);
          await store.restart();
        },
      },
      {
        name: `${of} is paused`,
        of,
        async happen(random) {
          await store.pause();
          await away(random).finally(() => store.resume());
        },
      },
    ]),
    {
      name: 'Redis loses everything',
      of: 'Redis',
      happen: async () => void (await redis.command('FLUSHALL')),
    },
    ...(redis.failover === undefined
      ? []
      : [{ name: 'Redis fails over to its replica', of: 'Redis', happen: redis.failover }]),
  ];
}

function processFailures(
  of: string,
  processes: readonly [ParleyProcess, ...ParleyProcess[]],
  away: (random: (below: number) => number) => Promise<void>,
): Failure[] {
  const anyOf = (random: (below: number) => number): ParleyProcess =>
    processes[random(processes.length)] ?? processes[0];
  return [
    {
      name: `${of} is killed`,
      of,
      async happen(random) {
        const process = anyOf(random);
        await process.kill9();
        await away(random);
        await process.start();
      },
    },
    {
      name: `${of} is paused`,
      of,
      async happen(random) {
        const process = anyOf(random);
        process.pause();
        await away(random).finally(() => process.resume());
      },
    },
    { name: `${of} is replaced`, of, happen: (random) => anyOf(random).restart() },
  ];
}

/** Rounds of up to `width` failures at once: a deck of all of them is dealt, shuffled, and dealt again. */
export function dealt(
  failures: readonly Failure[],
  {
    rounds,
    width,
    random,
  }: { readonly rounds: number; readonly width: number; readonly random: (n: number) => number },
): Failure[][] {
  const dealing: Failure[][] = [];
  let deck: Failure[] = [];
  while (dealing.length < rounds) {
    if (deck.length === 0) deck = shuffled(failures, random);
    const round: Failure[] = [];
    for (const failure of deck) {
      if (round.length < width && !round.some(({ of }) => of === failure.of)) round.push(failure);
    }
    deck = deck.filter((failure) => !round.includes(failure));
    dealing.push(round);
  }
  return dealing;
}

function shuffled<T>(items: readonly T[], random: (below: number) => number): T[] {
  return items
    .map((item) => ({ item, place: random(1_000_000) }))
    .sort((one, other) => one.place - other.place)
    .map(({ item }) => item);
}
