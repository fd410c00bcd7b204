/** Our side of appends: commands of channels, decided, appended, applied to the read model, answered. */
import { setTimeout as delay } from 'node:timers/promises';

import { derivedId, type EntityId, newId } from '#libs/kernel/ids.ts';
import { composeFeatures, type Features } from '#services/features.ts';

import {
  type AppendAnswer,
  appendedName,
  appendedPost,
  type AppendTask,
  benchChannel,
  metadataFor,
  type Written,
} from '../appended-event.ts';
import { answerTasks } from '../child-process.ts';
import { openBenchPlatform } from './bench-platform.ts';

answerTasks<AppendTask, AppendAnswer>(async ({ what, writers, streams, seconds, warmUpSeconds, ...urls }) => {
  const { platform, check } = await openBenchPlatform(urls);
  const features = composeFeatures(platform);
  const channels = await Promise.all(Array.from({ length: streams }, () => newChannel(features, what)));

  let count = 0;
  const end = new AbortController();
  async function write(channel: Channel): Promise<void> {
    while (!end.signal.aborted) {
      await channel.next();
      count += 1;
    }
  }
  const all = Promise.all(channels.flatMap((channel) => Array.from({ length: writers }, () => write(channel))));
  await Promise.race([all, delay(warmUpSeconds * 1000)]);
  const [before, started] = [count, performance.now()];
  const cpu = process.cpuUsage();
  await Promise.race([all, delay(seconds * 1000)]);
  const measured = count - before;
  const { user, system } = process.cpuUsage(cpu);
  const rate = (measured / (performance.now() - started)) * 1000;
  end.abort();
  await all;
  check();
  const [first] = channels;
  const cpuMicros = (user + system) / measured;
  return { rate, cpuMicros, stream: `channel-${first?.id}`, events: first?.events() ?? 0 };
});

interface Channel {
  readonly id: EntityId;
  /** Runs the next command; they are decided in the order of the calls. */
  next(): Promise<void>;
  /** Count of events in the channel's stream. */
  events(): number;
}

async function newChannel({ channels }: Features, what: Written): Promise<Channel> {
  const channel = benchChannel();
  await channels.create({ commandId: channel.id, ...metadataFor(channel.id) }, channel);
  let n = 0;
  const first = newId();
  const root = derivedId(first, 'span');
  const next = async (): Promise<void> => {
    n += 1;
    const commandId = n === 1 ? first : newId();
    const context = { commandId, ...metadataFor(commandId) };
    const isRoot = what === 'posts' || n === 1;
    const result =
      what === 'names'
        ? await channels.update(context, channel.id, { name: appendedName(n) })
        : await channels.interactions.post(context, channel.id, newPost(n, commandId, isRoot ? null : root), {
            spanIsNew: true,
          });
    if (!result.ok) throw new Error(result.rejection.reason);
  };
  return { id: channel.id, next, events: () => n + 1 };
}

function newPost(n: number, commandId: EntityId, parentSpanId: string | null) {
  const post = appendedPost(n, commandId, parentSpanId);
  return { ...post, participant: { ...post.participant }, content: [...post.content] };
}
