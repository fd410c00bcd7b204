/** Pages of interactions with and without reactions, in turn. */
import { newId } from '#libs/kernel/ids.ts';
import { streamRevision } from '#libs/kernel/event.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import { composeFeatures, type Features } from '#services/features.ts';

import { benchChannel, metadataFor } from '../appended-event.ts';
import { answerTasks } from '../child-process.ts';
import type { ListReactionsAnswer, ListReactionsTask } from '../list-reactions.benchmark.ts';
import { median } from '../statistics.ts';
import { openBenchPlatform } from './bench-platform.ts';
import { poster } from './posts-in-turn.ts';

const PAGE = 50;
const APPENDED = 500;
const EMOJIS = ['👍', '🎉', '❤️', '😂', '👀'];
const FILTER = { order: 'desc', includeIncomplete: false, includeToolCallUpdates: false } as const;
const { organizationId } = metadataFor('');

answerTasks<ListReactionsTask, ListReactionsAnswer>(async ({ reactions, seconds, ...urls }) => {
  const { platform, check } = await openBenchPlatform(urls);
  const features = composeFeatures(platform);
  const [bare, full] = [await newPage(features), await newPage(features)];
  const stored = await react(platform, full, reactions);
  await features.projector.catchUp('channel', organizationId, full);
  const works = {
    reactions: () => readPage(features, full),
    none: () => readPage(features, bare),
    parse: async () => void stored.map((mark): unknown => JSON.parse(mark)),
  };
  const times = { reactions: [] as number[], none: [] as number[], parse: [] as number[] };
  const started = performance.now();
  for (let round = 0; round < 5 || performance.now() - started < seconds * 1000; round++) {
    for (const name of ['reactions', 'none', 'parse'] as const) {
      const before = process.cpuUsage();
      await works[name]();
      const { user, system } = process.cpuUsage(before);
      // The first rounds are the warm-up.
      if (round > 1) times[name].push((user + system) / 1000);
    }
  }
  check();
  const of = (name: keyof typeof times) => ({ cpu: median(times[name]) });
  return { reactions: of('reactions'), none: of('none'), parse: of('parse') };
});

async function newPage(features: Features): Promise<string> {
  const channel = benchChannel();
  const commandId = newId();
  const result = await features.channels.create({ commandId, ...metadataFor(commandId) }, channel);
  if (!result.ok) throw new Error(result.rejection.reason);
  const post = poster(features, [channel.id]);
  for (let n = 0; n < PAGE; n++) await post();
  return channel.id;
}

/** Appends reactions of as many users. @returns about what the read model stores of each */
async function react({ store }: Platform, channelId: string, reactions: number): Promise<string[]> {
  const commandId = newId();
  const { at, organizationId: organization, actor } = metadataFor(commandId);
  const metadata = {
    at,
    organizationId: organization,
    actor,
    commandId,
    $correlationId: commandId,
    $causationId: commandId,
  };
  const all = Array.from({ length: PAGE * reactions }, (_, n) => ({
    sequence: 2 + (n % PAGE),
    emoji: EMOJIS[Math.floor(n / PAGE) % EMOJIS.length] ?? '',
    reactor: { type: 'user', id: newId(), name: `Customer ${n}` },
    target: { role: 'user', senderId: null },
  }));
  for (let from = 0; from < all.length; from += APPENDED) {
    const events = all
      .slice(from, from + APPENDED)
      .map((data) => ({ id: newId(), type: 'ReactionAdded.v1', data, metadata }));
    // The channel was created and posted to before.
    await store.append(`channel-${channelId}`, streamRevision(PAGE + from), events);
  }
  return all.map(({ emoji, reactor, target }, n) =>
    JSON.stringify(['reaction', PAGE + 2 + n, emoji, reactor.type, reactor.id, reactor.name, target.role, null]),
  );
}

async function readPage({ channels: { queries } }: Features, channelId: string): Promise<void> {
  const page = { size: PAGE, offset: 0, after: null };
  const found = await queries.list(organizationId, channelId, FILTER, page, { userId: null });
  if (found?.items.length !== PAGE) throw new Error(`${found?.items.length} items on a page`);
}
