/** Posts, one at a time, to channels with different numbers of participants in turn. */
import { newId } from '#libs/kernel/ids.ts';
import { composeFeatures } from '#services/features.ts';

import { benchChannel, metadataFor } from '../appended-event.ts';
import { answerTasks } from '../child-process.ts';
import type { ParticipantsAnswer, ParticipantsTask } from '../participants.benchmark.ts';
import { openBenchPlatform } from './bench-platform.ts';
import { inTurn, poster, type Work } from './posts-in-turn.ts';

answerTasks<ParticipantsTask, ParticipantsAnswer>(async ({ counts, seconds, ...urls }) => {
  const { platform, check } = await openBenchPlatform(urls);
  const features = composeFeatures(platform);
  const works: Work[] = [];
  for (const count of counts) {
    const commandId = newId();
    const participants = Array.from({ length: count }, (_, index) => participant(index));
    const channel = { ...benchChannel(), participants };
    const result = await features.channels.create({ commandId, ...metadataFor(commandId) }, channel);
    if (!result.ok) throw new Error(result.rejection.reason);
    works.push(poster(features, [channel.id]));
  }
  const medians = await inTurn(works, seconds);
  check();
  return Object.fromEntries(counts.map((count, index) => [count, { post: medians[index] ?? Number.NaN }]));
});

function participant(index: number) {
  return {
    type: 'authenticated_user',
    participantId: newId(),
    userId: newId(),
    displayName: `Customer ${index}`,
    imageUrl: `https://images.example.org/customers/${index}.png`,
    isOwner: false,
  } as const;
}
