/** A realtime node with thousands of open channels, to which events are published in random order. */
import { MAX_KEPT_BYTES } from '#libs/platform/live/frame-memory.ts';
import { RealtimeNode } from '#libs/features/realtime/index.ts';
import type { LiveStream } from '#libs/platform/live/live-stream.ts';
import { newId } from '#libs/kernel/ids.ts';
import { sequenceOf, streamRevision } from '#libs/kernel/event.ts';
import { LiveNode, encodeEvent, eventFrame, channelTopic } from '#libs/platform/live/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import { composeFeatures, type Features } from '#services/features.ts';
import { eventually } from '#test/support/eventually.ts';
import { nodeWith } from '#test/support/redis-commands.ts';

import { appendedPost, benchChannel, metadataFor } from '../appended-event.ts';
import type { BusyChannelsAnswer, BusyChannelsTask } from '../busy-channels.benchmark.ts';
import { answerTasks } from '../child-process.ts';
import { openBenchPlatform } from './bench-platform.ts';

const MIB = 1024 * 1024;
const AT_ONCE = 100;
const AT = '2026-01-31T12:00:00.000Z';
const ACTOR = {
  type: 'user',
  id: '01a1ff86-0000-7000-8000-000000000000',
  keyId: '01a1ff87-0000-7000-8000-000000000000',
} as const;
/** No tick happens during the measurement: channels without subscribers stay open. */
const NEVER_MS = 2 ** 30;

answerTasks<BusyChannelsTask, BusyChannelsAnswer>(async ({ channels: count, events, ...urls }) => {
  const { platform, check } = await openBenchPlatform(urls);
  const features = composeFeatures(platform);
  const node = new RealtimeNode(new LiveNode(platform, { heads: async () => [] }, NEVER_MS), features.realtime);
  const channels: LiveStream[] = [];
  while (channels.length < count) {
    channels.push(...(await Promise.all(Array.from({ length: AT_ONCE }, () => newOpenChannel(features, node)))));
  }
  const before = memory();
  const received = await publishAll(platform, channels, events);
  await eventually(() => channels.every(({ head }) => head === events + 1), { timeoutMs: 60_000 });
  const after = memory();
  check();
  return {
    node: { memory: (after - before) / MIB },
    budget: { memory: MAX_KEPT_BYTES / MIB },
    received: { memory: received / MIB },
  };
});

async function newOpenChannel({ channels }: Features, node: RealtimeNode): Promise<LiveStream> {
  const commandId = newId();
  const context = { commandId, isNew: true, ...metadataFor(commandId) };
  const channel = benchChannel();
  const result = await channels.create(context, channel);
  if (!result.ok) throw new Error(result.rejection.reason);
  const open = await node.open(context.organizationId, channel.id);
  if (open === null) throw new Error('the channel is missing');
  return open;
}

/** @returns the bytes of the frames */
async function publishAll(platform: Platform, channels: readonly LiveStream[], events: number): Promise<number> {
  const heads = channels.map(() => 1);
  const open = channels.map((_, index) => index);
  let bytes = 0;
  while (open.length > 0) {
    const sent: Promise<unknown>[] = [];
    for (let n = 0; n < AT_ONCE && open.length > 0; n++) {
      const at = Math.floor(Math.random() * open.length);
      const index = open[at] ?? 0;
      const channel = channels[index];
      const head = (heads[index] = (heads[index] ?? 1) + 1);
      if (head === events + 1) {
        open[at] = open.at(-1) ?? 0;
        open.pop();
      }
      if (channel === undefined) throw new RangeError(`no channel ${index}`);
      const json = JSON.stringify(appendedPost(head, channel.id, null));
      const frame = eventFrame(
        sequenceOf(streamRevision(head - 1)),
        { at: AT, actor: ACTOR },
        { type: 'interaction.posted', json },
      );
      bytes += frame.json.length;
      const topic = channelTopic(channel.organizationId, channel.id);
      sent.push(nodeWith(platform.redis, topic).spublish(topic, encodeEvent(frame)));
    }
    await Promise.all(sent);
  }
  return bytes;
}

function memory(): number {
  // Twice: the second collection frees what the first one finalised.
  void globalThis.gc?.();
  void globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
