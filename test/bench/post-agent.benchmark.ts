/** What an agent that does not answer adds to a post: each message leads to the decision whether the agent answers. */
import { setTimeout as pause } from 'node:timers/promises';

import type { Benchmark, Sample, Scale } from './benchmark.ts';
import { type ChannelFixture, prepareChannels } from './channel-fixture.ts';
import { cpuSecondsOf, type Parley } from './child-process.ts';
import { warmUpInRounds } from './load/warm-up.ts';
import { postToRunning } from './postgres.benchmark.ts';

/** Below what both sides keep up with: otherwise the ratio would say how long their queues are. */
const RATE = 200;
const SETTLED_WITHIN_MS = 60_000;
/** Opening sockets and reading metrics count as well, so few posts would make both sides more alike. */
const LEAST_SECONDS = 8;

const title = `processor time of a post, its frame and its decisions, ${RATE}/s: with an agent in the channel, and without`;

export const postAgentBenchmark: Benchmark = {
  name: 'post-agent',
  rows: [
    { title, ours: 'agent', theirs: 'none', figure: 'cpuMicros', unit: 'us', goal: { atMost: 1.25 } },
    { title: `POST to its frame at ${RATE}/s: p50`, ours: 'agent', theirs: 'none', figure: 'p50', unit: 'ms' },
  ],
  async prepare() {
    const [agent, none] = [await prepareChannels(1), await prepareChannels(1, { hasAgent: false })];
    return {
      sides: {
        agent: (scale) => postsAndDecisions(agent, scale),
        none: (scale) => postsAndDecisions(none, scale),
      },
      cleanUp: async () => void (await Promise.all([agent.cleanUp(), none.cleanUp()])),
    };
  },
};

/** Counts from and to a moment at which no decision is due: neither those of the warm-up, nor too few of the posts. */
async function postsAndDecisions(fixture: ChannelFixture, { warmUpSeconds, ...scale }: Scale): Promise<Sample> {
  const seconds = Math.max(scale.seconds, LEAST_SECONDS);
  const parley = await fixture.start();
  try {
    await warmUpInRounds([parley.pid], () =>
      postToRunning(parley, fixture, RATE, { seconds: warmUpSeconds, warmUpSeconds: 0 }),
    );
    await settled(parley);
    const before = await cpuSecondsOf(parley.pid);
    const { figures, remarks } = await postToRunning(parley, fixture, RATE, { seconds, warmUpSeconds: 0 });
    await settled(parley);
    const cpuSeconds = (await cpuSecondsOf(parley.pid)) - before;
    const cpuMicros = (cpuSeconds / (RATE * seconds)) * 1e6;
    return { figures: { ...figures, cpuMicros }, ...(remarks && { remarks }) };
  } finally {
    await parley.stop();
  }
}

/** Resolves when the reactors hold no event, at two looks. */
async function settled({ url }: Pick<Parley, 'url'>): Promise<void> {
  const startedAt = performance.now();
  for (let looks = 0; looks < 2;) {
    await pause(250);
    const metrics = await (await fetch(new URL('/metrics', url))).text();
    const held = [...metrics.matchAll(/^parley_reactor_events_in_flight\{.*\} (\d+)$/gm)];
    if (held.length === 0) throw new Error('the metrics of reactors are missing');
    looks = held.every(([, count]) => count === '0') ? looks + 1 : 0;
    if (performance.now() - startedAt > SETTLED_WITHIN_MS) throw new Error('the decisions do not end');
  }
}
