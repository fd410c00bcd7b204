/** Operations one at a time, in turn with the same operations elsewhere, so that all of them meet the same noise. */
import { newId } from '#libs/kernel/ids.ts';
import type { Features } from '#services/features.ts';

import { appendedPost, metadataFor } from '../appended-event.ts';
import { median } from '../statistics.ts';

export type Work = () => Promise<void>;

/** Fraction of the time that does not count. */
const WARM_UP = 0.2;

/** @returns the median duration of each, in microseconds */
export async function inTurn(works: readonly Work[], seconds: number, most = Infinity): Promise<number[]> {
  const times = works.map(() => [] as number[]);
  const started = performance.now();
  for (let round = 0; round < most && performance.now() - started < seconds * 1000; round++) {
    for (const [index, work] of works.entries()) {
      const from = performance.now();
      await work();
      times[index]?.push((performance.now() - from) * 1000);
    }
  }
  return times.map((all) => median(all.slice(Math.floor(all.length * WARM_UP))));
}

/** Posts to the channels in turn. */
export function poster({ channels: { interactions } }: Features, channels: readonly string[]): Work {
  let turn = 0;
  return async () => {
    const commandId = newId();
    const channel = channels[turn++ % channels.length] ?? '';
    const { participant, content, ...rest } = appendedPost(turn, commandId, null);
    const interaction = { ...rest, participant: { ...participant }, content: [...content] };
    const context = { commandId, ...metadataFor(commandId) };
    const result = await interactions.post(context, channel, interaction, { spanIsNew: true });
    if (!result.ok) throw new Error(result.rejection.reason);
  };
}
