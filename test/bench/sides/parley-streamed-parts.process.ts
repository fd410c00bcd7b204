/** Answers that are posted incomplete and streamed in parts, one after another: short and long ones in turn. */
import type { InteractionRef } from '#libs/features/channels/index.ts';
import { sequenceOf } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import { composeFeatures, type Features } from '#services/features.ts';
import { nodeWith } from '#test/support/redis-commands.ts';

import { appendedPost, benchChannel, metadataFor } from '../appended-event.ts';
import { answerTasks } from '../child-process.ts';
import { median } from '../statistics.ts';
import type { StreamedPartsAnswer, StreamedPartsTask } from '../streamed-parts.benchmark.ts';
import { openBenchPlatform } from './bench-platform.ts';

interface Cost {
  readonly cpu: number;
  readonly redis: number;
  readonly time: number;
}

/** Parts that are measured together, at least. */
const PARTS = 1_000;
/** A dozen words, about as a client sends them at ten parts a second. */
const PART = [
  { type: 'text', text: 'the second payment is only a reservation that your bank drops by itself. ' },
] as const;

answerTasks<StreamedPartsTask, StreamedPartsAnswer>(async ({ lengths, seconds, ...urls }) => {
  const { platform, check } = await openBenchPlatform(urls);
  const features = composeFeatures(platform);
  const measured = lengths.map((): Cost[] => []);
  const started = performance.now();
  for (let round = 0; round < 3 || performance.now() - started < seconds * 1000; round++) {
    for (const [index, length] of lengths.entries()) {
      const targets: InteractionRef[] = [];
      while (targets.length < PARTS / length) targets.push(await newAnswer(features));
      const before = await used(platform);
      for (const target of targets) await stream(features, target, length);
      const after = await used(platform);
      const parts = targets.length * length;
      const each = (figure: keyof Cost): number => (after[figure] - before[figure]) / parts;
      // The first round is the warm-up.
      if (round > 0) measured[index]?.push({ cpu: each('cpu'), redis: each('redis'), time: each('time') });
    }
  }
  check();
  return Object.fromEntries(
    lengths.map((length, index) => {
      const of = (figure: keyof Cost): number => median((measured[index] ?? []).map((cost) => cost[figure]));
      return [length, { cpu: of('cpu'), redis: of('redis'), time: of('time') }];
    }),
  );
});

/** Used so far, in microseconds. */
async function used({ redis }: Platform): Promise<Cost> {
  const info = String(await nodeWith(redis, 'any').info('cpu'));
  const ofRedis = (kind: string): number => Number(new RegExp(`used_cpu_${kind}:([\\d.]+)`).exec(info)?.[1]) * 1e6;
  const { user, system } = process.cpuUsage();
  return { cpu: user + system, redis: ofRedis('user') + ofRedis('sys'), time: performance.now() * 1000 };
}

async function newChannel({ channels }: Features): Promise<string> {
  const channel = benchChannel();
  const result = await channels.create({ ...newContext(), isNew: true }, channel);
  if (!result.ok) throw new Error(result.rejection.reason);
  return channel.id;
}

function newContext() {
  const commandId = newId();
  return { commandId, ...metadataFor(commandId) };
}

/** An incomplete interaction in a channel of its own. */
async function newAnswer(features: Features): Promise<InteractionRef> {
  const channelId = await newChannel(features);
  const context = newContext();
  const { participant, ...rest } = appendedPost(1, context.commandId, null);
  const interaction = { ...rest, participant: { ...participant }, content: [], complete: false };
  const posted = await features.channels.interactions.post(context, channelId, interaction, { spanIsNew: true });
  if (!posted.ok) throw new Error(posted.rejection.reason);
  return { channelId, sequence: sequenceOf(posted.revision) };
}

async function stream({ channels }: Features, target: InteractionRef, parts: number): Promise<void> {
  for (let part = 0; part < parts; part++) {
    const appended = await channels.interactions.append(newContext(), target, [...PART], 'operator');
    if (!appended.ok) throw new Error(appended.rejection.reason);
  }
}
