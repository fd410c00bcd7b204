/** From a due post to its frame at a socket: the whole product, against the same without stores. */
import type { Benchmark, Sample, Scale } from './benchmark.ts';
import { prepareChannels } from './channel-fixture.ts';
import { cpuSecondsOf, startChild } from './child-process.ts';
import type { PostToFrame, PostToFrameResult } from './load/post-to-frame.process.ts';
import { tickets } from './socket-fixture.ts';

const CONNECTIONS = 32;
const LATE_MS = 3;

export const postToFrameBenchmarks: readonly Benchmark[] = [
  postToFrame('post-frame', { rate: 500, figure: 'p50', goal: 3.5 }),
  postToFrame('post-frame-p99', { rate: 1_000, figure: 'p99', goal: 4 }),
  postToFrame('post-frame-no-agent', { rate: 500, figure: 'p50', goal: 3.5, hasAgent: false }),
];

interface Kind {
  readonly rate: number;
  readonly figure: 'p50' | 'p99';
  readonly goal: number;
  readonly hasAgent?: boolean;
}

function postToFrame(name: string, { rate, figure, goal, hasAgent = true }: Kind): Benchmark {
  return {
    name,
    rows: [
      {
        title: `POST interaction to its frame${hasAgent ? '' : ', no agent in the channel'}, ${figure} at ${rate}/s, open loop`,
        ours: 'parley',
        theirs: 'emitter',
        figure,
        unit: 'ms',
        goal: { atMost: goal },
      },
      // Varies less where other processes keep the machine busy.
      {
        title: `processor time of a post and its frame, at ${rate}/s`,
        ours: 'parley',
        theirs: 'emitter',
        figure: 'cpuMicros',
        unit: 'us',
      },
    ],
    async prepare() {
      const { headers, paths, start, cleanUp } = await prepareChannels(1, { hasAgent });
      const path = `${paths[0]}/interactions`;
      const request = { method: 'POST', path, headers, body: postOf('########') };
      const sample = await sampleOf(start, headers, path);
      return {
        sides: {
          async parley(scale) {
            const parley = await start();
            try {
              const [ticket = ''] = await tickets(parley.url, { headers, paths }, 1);
              const protocols = ['parley.v1', `ticket.${ticket}`];
              const socket = { path: `${paths[0]}/websocket`, protocols, greeting: '{"frame":"resume"}' };
              return await load(parley, { request, socket, framesFirst: 2, rate }, scale);
            } finally {
              await parley.stop();
            }
          },
          async emitter(scale) {
            const server = startChild('sides/emitter-server.process.ts');
            try {
              const { url } = await server.ask<{ url: string }>(sample);
              return await load(
                { pid: server.pid, url: new URL(url) },
                { request, socket: { path: '/', protocols: [] }, framesFirst: 1, rate },
                scale,
              );
            } finally {
              await server.stop();
            }
          },
        },
        cleanUp,
      };
    },
  };
}

const postOf = (mark: string): string =>
  JSON.stringify({ content: [{ type: 'text', text: `Where is my order ${mark}? It was to come on Monday.` }] });

/** Parley's answer to a post and the resulting frame, with `########` in place of the post's number. */
async function sampleOf(
  start: () => Promise<{ url: URL; stop(): Promise<void> }>,
  headers: Readonly<Record<string, string>>,
  path: string,
): Promise<{ body: string; frame: string }> {
  const parley = await start();
  try {
    const response = await fetch(new URL(path, parley.url), { method: 'POST', headers, body: postOf('12345678') });
    const body = (await response.text()).replace('12345678', '########');
    if (!response.ok) throw new Error(`the post was refused: ${response.status} ${body}`);
    const at = '2026-01-01T00:00:00.000Z';
    return { body, frame: `{"frame":"event","seq":1000,"type":"interaction.posted","at":"${at}","data":${body}}` };
  } finally {
    await parley.stop();
  }
}

async function load(
  { pid, url }: { readonly pid: number; readonly url: URL },
  task: Pick<PostToFrame, 'request' | 'socket' | 'framesFirst' | 'rate'>,
  { seconds, warmUpSeconds }: Scale,
): Promise<Sample> {
  const generator = startChild('load/post-to-frame.process.ts');
  try {
    const { rate } = task;
    const place = { host: url.hostname, port: Number(url.port) };
    const full = { ...task, ...place, connections: CONNECTIONS, seconds, warmUpSeconds } satisfies PostToFrame;
    const before = await cpuSecondsOf(pid);
    const { frames, refused, missing, p50, p99, lagP99 } = await generator.ask<PostToFrameResult>(full);
    const cpuSeconds = (await cpuSecondsOf(pid)) - before;
    if (refused > 0 || missing > 0) throw new Error(`${refused} posts were refused, ${missing} frames never came`);
    return {
      figures: { rate: frames / seconds, p50, p99, cpuMicros: (cpuSeconds / (rate * (seconds + warmUpSeconds))) * 1e6 },
      remarks: lagP99 > LATE_MS ? [`the load generator was late by more than ${LATE_MS} ms`] : [],
    };
  } finally {
    await generator.stop();
  }
}
